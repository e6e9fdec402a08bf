"""Client library of sockpqd."""
