"""Oracles for runs of several kinds."""
