"""Pending answers: slots in the order of the commands, and clients blocked until there is a job or a grant.

May import auth, pulses and protocol.
"""
