"""The commands, one file per family, and the table of all verbs.

May import protocol, waiting and auth.
"""
