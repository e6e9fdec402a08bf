"""The windows of pulses on the serving leader: how many grants the promise leaves room for.

May import protocol. Nothing of it is replicated (spec/pulse 3.1).
"""
