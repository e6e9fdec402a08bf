"""The result backend: results of tasks as jobs with a key, and who waits for them is told."""
