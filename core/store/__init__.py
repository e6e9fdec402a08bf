"""The collections of jobs and queues that the state is made of, each with its own invariants.

May use core.ops.
"""
