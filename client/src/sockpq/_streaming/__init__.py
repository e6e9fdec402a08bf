"""Operations that last longer than a call: streams of events, sessions that jobs are bound to, renewals of leases.

All without threads and tasks: those of each client are in its own room. May use the engine and what that may use.
"""
