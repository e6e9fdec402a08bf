"""Messages between nodes outside the log: commands for the leader, and events for subscribers of other nodes."""
