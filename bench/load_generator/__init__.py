"""Load at a cluster: connections, loops, what is measured, and against what."""
