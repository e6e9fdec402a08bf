"""What the tests of cluster share: disks that fail, and a few real drivers in one process."""
