"""Histories for tests of the checker: written by hand, or of a simulated cluster and known to be true."""
