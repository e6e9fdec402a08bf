"""Simulated histories that are told by a script instead of drawn by a seed."""
