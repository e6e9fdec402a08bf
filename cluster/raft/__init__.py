"""Raft around pysyncobj: the adapter, the transport it is given, elections, quorum, appending, snapshot transfer.

May use cluster.storage and cluster.wire.
"""
