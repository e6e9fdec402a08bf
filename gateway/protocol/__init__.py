"""The text protocol: bytes to commands, replies to bytes. No IO.

May use the limits.
"""
