"""Client sessions: remembered answers, bound jobs, expiry and owners.

May use core.ops and core.store.
"""
