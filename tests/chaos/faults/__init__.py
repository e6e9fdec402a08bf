"""What is done to a cluster of real processes: to links, nodes, clocks, disks and snapshots, and to whom."""
