"""The collections of jobs and queues that make up the state, each with its own invariants.

May use core.ops.
"""
