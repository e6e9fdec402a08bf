"""Shared by journal and snapshots: the disk and its errors, ballast, forked tasks, and the hash of the state.

May use the limits and metrics of the cluster.
"""
