"""Who may do what: users, secrets, rights, and which right each command needs.

May use the protocol and the configuration.
"""
