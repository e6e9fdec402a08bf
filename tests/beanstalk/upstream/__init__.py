"""Runs the tests of beanstalkd and of its clients, which are not in this tree, against a cluster of our own."""
