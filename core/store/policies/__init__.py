"""How a GET for several queues chooses among them: at random, by the oldest job, by WEIGHT (spec/state-machine 4.2)."""
