"""Keys of Puts and jobs that a queue keeps for some time. Uses the limits, and the timer index."""
