"""The context of a command: the client it runs for, that client's session and transaction, and the way into the log.

May import protocol, waiting and auth; the commands import it, it imports none of them.
"""
