"""The front end of the daemon: the sockPQd text protocol over TCP, blocked clients, configuration, main.

Nothing is loaded here: `sockpqd --help` needs none of it.
"""
