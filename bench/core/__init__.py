"""The costs of the state machine alone, without nodes, disks or sockets."""
