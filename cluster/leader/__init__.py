"""What a leader does besides replication: serving, proposing, fairness among clients, time, membership, compaction.

May use cluster.raft and what lies below it.
"""
