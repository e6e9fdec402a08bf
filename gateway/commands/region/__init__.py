"""Commands for copies of the cluster in other regions.

Uses what the other commands use.
"""
