"""The feed of a cluster: its log, as copies in other regions read it from any node.

Uses core and the rooms of cluster before it, not the driver.
"""
