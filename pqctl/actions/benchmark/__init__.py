"""`pqctl bench`: load for a cluster, and the removal of its jobs. May import the same rooms as `actions`."""
