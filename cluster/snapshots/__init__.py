"""Snapshots of the state: their format, their files, and the store that pysyncobj writes to and loads from.

May use cluster.journal, cluster.paging and the rooms before them.
"""
