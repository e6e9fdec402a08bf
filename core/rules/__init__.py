"""What may happen to a job and when: admission, choice, hand-out, completion, activation, expiry.

May use the state and what lies below it (core.ops, core.store).
"""
