"""Clients and their connections: ports, places, the order of commands and answers, time limits, memory.

May use everything of the gateway but monitoring, and what starts the process.
"""
