"""The language of the log and the machine: operations, entries, replies, effects, settings.

Uses only the limits.
"""
