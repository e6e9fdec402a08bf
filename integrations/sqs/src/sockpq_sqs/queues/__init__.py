"""Queues: their names, attributes, tags and policies, and the registry in the cluster that keeps them."""
