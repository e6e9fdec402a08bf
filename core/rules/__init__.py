"""What may happen to a job and when: admission, choice, hand-out, completion, activation, expiry.

May use the state and the rooms below it.
"""
