"""An explicit-state model of the replication, the search through its states, and the comparison with the real nodes."""
