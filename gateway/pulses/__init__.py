"""The windows of pulses on the serving leader: how many grants are free.

May import protocol. None of this is replicated (spec/pulse 3.1).
"""
