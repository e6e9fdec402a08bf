"""What a node does about damage of its own files: it comes back without them, and looks for damage while it runs.

May use cluster.storage, cluster.journal and cluster.snapshots.
"""
