"""Simulated histories that follow a script instead of a seed."""
