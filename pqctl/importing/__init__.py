"""Imports jobs of other programs. Uses the packages before it in the order of rooms."""
