"""What nodes pass on to each other beside the log: commands for the leader, and events for subscribers elsewhere."""
