"""The cluster under test: real nodes behind proxies, with clocks that can be set and disks that can be filled."""
