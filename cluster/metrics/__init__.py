"""Measurements of a node: latencies, turns of the loop, memory and disk.

Uses nothing else of the cluster.
"""
