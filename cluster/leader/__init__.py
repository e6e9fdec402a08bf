"""What a leader does beyond replicating: serving, proposing, fairness among clients, time, membership, compaction.

May use cluster.raft and what lies below it.
"""
