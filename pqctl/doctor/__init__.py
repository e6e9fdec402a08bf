"""`pqctl doctor`: the checks of servers, machine and access, and the health of a cluster."""
