"""Pulses on the serving leader: who waits for a turn, and how many grants the promise leaves room for.

May import waiting and protocol. Nothing of it is replicated (spec/pulse 3.1).
"""
