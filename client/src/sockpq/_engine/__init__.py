"""The path of a call to the serving leader: connections, attempts, retries, discovery.

May use the protocol and the backends.
"""
