"""The nodes of the cluster as the log has them: members and server ids.

May use core.ops.
"""
