"""The process of a node: logging, service manager, certificates, memory and descriptor limits, restarts.

May import config.
"""
