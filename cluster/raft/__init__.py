"""Raft around pysyncobj: adapter, transport, elections, quorum, AppendEntries, snapshot transfer.

May use cluster.storage and cluster.wire.
"""
