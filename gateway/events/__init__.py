"""Delivers events to subscribers: the history on this node, the filters of subscribers, and the lines to send.

Of the protocol this room knows only these lines; of clients, only that lines can be sent to them.
"""
