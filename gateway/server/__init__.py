"""Client connections: ports, connection slots, command and answer order, timeouts, memory accounting.

May import everything in the gateway except monitoring and process startup.
"""
