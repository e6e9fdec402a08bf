"""The handlers: how each operation is executed and what it costs, with the table of all operations (table.py).

A handler gets the state, the operation and its random bits (seed), and returns the reply. It is total: a client's
mistake is a reply, never an exception. It checks everything before it changes anything. The cost function of an
operation is next to its handler.

May use everything of core except the machine and its queries.
"""
