"""The state as bytes and back: frames, writing, reading, and the upload of a CLONE.

May use the rules and the rooms before them.
"""
