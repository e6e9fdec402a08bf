"""Commands with live output: events, and the state of the cluster once a second.

May use the same rooms as the actions.
"""
