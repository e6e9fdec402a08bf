"""The gateway in simulated clusters: real conversations over simulated connections, in simulated time."""
