"""Operations that last longer than a call: streams of events, sessions that jobs are bound to, renewals of leases.

None of this uses threads or tasks: those are in the room of each client. May use the engine and the rooms before it.
"""
