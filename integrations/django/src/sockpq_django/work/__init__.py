"""The work on a task: one attempt, its outcome, and how that outcome is reported to the cluster."""
