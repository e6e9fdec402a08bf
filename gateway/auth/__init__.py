"""Authentication and authorization: users, secrets, rights, and which right each command needs.

May import protocol and config.
"""
