"""The log of the origin in the log of a replica: what the leader takes of it, and the same for coroutines.

It uses core, the journal's chain of hashes and the leader's room; the driver and the node use it.
"""
