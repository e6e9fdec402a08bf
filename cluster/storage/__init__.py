"""Durable storage of a node: the journal with its view of the log, snapshots, and the hash of the state.

May use the settings, errors and metrics of the cluster.
"""
