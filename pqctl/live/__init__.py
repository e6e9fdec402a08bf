"""What commands show as it happens: events, and the queues once a second.

May use the same rooms as the actions.
"""
