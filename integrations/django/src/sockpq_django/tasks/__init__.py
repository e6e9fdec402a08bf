"""Tasks as jobs: the names of their queues, their bodies, and the results that are read from them."""
