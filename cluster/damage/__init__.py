"""Detects damage of the node's own files while it runs, repairs it, and starts the node without damaged files.

May use cluster.storage, cluster.journal and cluster.snapshots.
"""
