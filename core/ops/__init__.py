"""What the log carries and what the machine answers: operations, replies, effects, settings, and what each costs.

Uses nothing else of core.
"""
