"""What FAIR was made for, simulated in replicated time beside FIFO and PRIORITY: `python -m bench.fairness`.

`cases` the work, `simulation` workers that do it, `tables` and `pictures` what came out. Nothing waits: the program
drives the state machine itself, so the same numbers come out on every machine.
"""
