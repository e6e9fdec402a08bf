"""How a call reaches the serving leader: connections, attempts, retries, discovery.

May use the protocol and the backends.
"""
