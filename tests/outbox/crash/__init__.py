"""Producers, relays and workers are killed or put to sleep at every point; each committed order has one effect."""
