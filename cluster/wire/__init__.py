"""Connections between nodes: messages, framing, TLS, and one link for each peer.

May use the settings, errors and metrics of the cluster.
"""
