"""`pqctl bench`: load for a cluster, and the removal of its jobs. May use what actions may."""
