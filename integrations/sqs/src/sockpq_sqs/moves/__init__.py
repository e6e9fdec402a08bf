"""Tasks that move dead letters back or to another queue: their records in the cluster, the actions, and the mover."""
