"""Counts the instructions of Python that a node executes for a job, by function, also beside another commit."""
