"""The load generator: connections, open and closed loops, measurements, and the cluster under test."""
