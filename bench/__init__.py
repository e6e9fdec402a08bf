"""The demo, a local cluster of real nodes, and the benchmark programs for users."""
