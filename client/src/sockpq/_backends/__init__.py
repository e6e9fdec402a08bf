"""Connections, time and waiting, for threads and for asyncio, and TLS over both.

May use the protocol.
"""
