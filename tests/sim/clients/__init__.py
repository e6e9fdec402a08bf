"""Simulated clients: their commands, their search for the leader, and the outcome of each command."""
