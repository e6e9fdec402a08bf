"""The result backend: results of tasks as jobs with a key, and notifications to programs that wait for them."""
