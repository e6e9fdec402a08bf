"""What goes wrong in a simulated cluster, and what operators do to it meanwhile."""
