"""A simulated cluster: real nodes (the driver and all below it) on simulated time, disks and networks."""
