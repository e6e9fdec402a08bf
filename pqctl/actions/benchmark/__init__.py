"""`pqctl bench`: load for a cluster, and what it leaves behind. May use what actions may."""
