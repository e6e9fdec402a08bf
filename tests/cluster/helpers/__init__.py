"""Helpers of the tests of cluster: disks that fail, and a few real drivers in one process."""
