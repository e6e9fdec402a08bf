"""The work of a leader, without replication: serving, proposing, fairness among clients, time, membership, compaction.

May use cluster.raft and the rooms before it.
"""
