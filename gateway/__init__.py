"""The front end of the daemon: the sockPQd text protocol over TCP, blocked clients, configuration, main.

Nothing is imported here, so that `sockpqd --help` is fast.
"""
