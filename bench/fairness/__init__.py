"""Compares FAIR with FIFO and PRIORITY under its typical loads, in simulated time: `python -m bench.fairness`.

`cases` has the work, `simulation` the workers that do it, `tables` and `pictures` the results. Nothing waits: the
program drives the state machine itself, so the results are the same on every machine.
"""
