"""The policies by which a GET chooses among queues: random, oldest job, WEIGHT (spec/state-machine 4.2)."""
