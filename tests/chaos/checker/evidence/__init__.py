"""Derives from a run's records each job's hand-outs, the end of its leases, and when it certainly waited."""
