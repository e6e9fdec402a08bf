"""What the log carries and what the machine answers: operations, entries, replies, effects, settings.

Uses only the limits.
"""
