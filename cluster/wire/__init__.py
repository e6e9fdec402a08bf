"""Connections between nodes: messages, framing, TLS, and a link to each peer.

May use the limits, settings and metrics of the cluster.
"""
