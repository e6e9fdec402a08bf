"""The text protocol: bytes to requests, replies to bytes. No IO.

May use the limits.
"""
