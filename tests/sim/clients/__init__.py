"""Simulated clients: what they ask for, how they find the leader, and what became of each command."""
