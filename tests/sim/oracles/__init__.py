"""The judges of a simulated run, and its counters."""
