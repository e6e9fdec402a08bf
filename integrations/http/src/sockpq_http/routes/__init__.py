"""The requests under /v1: a module for each family, and the table of all of them (table.py)."""
