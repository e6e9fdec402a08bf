"""What each command does, one file for each family, and the table of them.

May use the protocol, waiting and auth.
"""
