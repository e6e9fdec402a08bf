"""Clients of beanstalkd beside the load, at the listener of each node and at `sockpq-beanstalkd`, and their judge."""
