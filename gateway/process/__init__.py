"""The process of a node: log, service manager, certificates, limits of memory and files, restarts.

May use the configuration.
"""
