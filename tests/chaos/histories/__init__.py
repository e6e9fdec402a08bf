"""Histories to judge the checker by: written by hand, or of a simulated cluster and known to be true."""
