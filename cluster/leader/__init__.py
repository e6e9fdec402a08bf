"""The work of a leader besides replication: serving, proposing, fairness among clients, time, membership, compaction.

May use cluster.raft and what lies below it.
"""
