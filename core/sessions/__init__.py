"""The sessions of clients: remembered answers, bound jobs, ends and owners.

May use core.ops and core.store.
"""
