"""Raft around pysyncobj: adapter, transport, elections, quorum, AppendEntries, snapshot transfer.

May use cluster.snapshots, cluster.wire and the rooms before them.
"""
