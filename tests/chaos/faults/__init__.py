"""Faults of a cluster of real processes: links, nodes, clocks, disks and snapshots, and the choice of the affected
nodes.
"""
