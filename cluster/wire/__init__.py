"""Connections between nodes: messages, framing, TLS, and a link to each peer.

May use the settings, errors and metrics of the cluster.
"""
