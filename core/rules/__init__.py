"""The rules of a job's life: admission, choice, hand-out, completion, activation, expiry.

May use the state and the rooms before it.
"""
