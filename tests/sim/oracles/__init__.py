"""What judges a simulated run, and what counts what happened in it."""
