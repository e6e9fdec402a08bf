"""What the state machine alone costs, without nodes, disks or sockets."""
