"""What each operation does and costs: one handler for each, and the table of them (table.py).

A handler gets the state, the operation and the random bits of its place in the entry, and returns the reply. It is
total: any mistake of a client is a reply, never an exception. It checks first and changes afterwards. Beside it stands
what its operation costs.

May use everything of core except the machine and its queries.
"""
