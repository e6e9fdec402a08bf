"""What each operation does, one function for each, and the table of them.

May use everything of core but the machine and its queries.
"""
