"""The cluster itself: who leads, who belongs to it, and the state that a CLONE brings. May import what handlers may."""
