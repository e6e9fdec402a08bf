"""The relay: moves committed rows of an outbox into the cluster, each exactly once.

It may use `databases`, `jobs` and `rows`. `relay.Relay` is its face, `ledger.py` explains why nothing arrives twice.
"""
