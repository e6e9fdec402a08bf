"""The journal: log entries, term, vote and commit index on disk, and the log as pysyncobj reads it.

May use cluster.storage and the rooms before it.
"""
