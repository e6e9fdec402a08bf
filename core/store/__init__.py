"""The collections the state is made of, each with its own invariants.

May use core.ops.
"""
