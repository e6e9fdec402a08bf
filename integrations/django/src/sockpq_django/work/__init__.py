"""The work on a task: one attempt, its outcome, and how that outcome is made known to the cluster."""
