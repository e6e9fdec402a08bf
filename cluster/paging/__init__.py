"""Pages of waiting jobs on the disk of this node: their files, and the schedule by which jobs go there.

May use cluster.storage.
"""
