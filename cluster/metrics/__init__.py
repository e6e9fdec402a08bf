"""What a node measures of itself: latencies, turns of the loop, memory and disk.

Uses nothing else of the cluster.
"""
