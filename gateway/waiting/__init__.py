"""Answers that are not there yet: slots in their order, and clients that are blocked until there is a job.

May use the protocol.
"""
