"""Keys of Puts and jobs that a queue knows until a time. Uses the limits, and the timer index."""
