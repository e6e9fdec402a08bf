"""Snapshots of the state: their format, their files, and the store that pysyncobj writes to and loads from.

May use cluster.journal and what lies below it.
"""
