"""The nodes of the cluster as recorded in the log: members and server ids.

May use core.ops.
"""
