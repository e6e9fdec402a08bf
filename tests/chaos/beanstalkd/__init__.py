"""Additional clients of beanstalkd, at the listener of each node and at `sockpq-beanstalkd`, and their judge."""
