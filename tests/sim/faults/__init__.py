"""Faults in a simulated cluster, and the actions of operators during them."""
