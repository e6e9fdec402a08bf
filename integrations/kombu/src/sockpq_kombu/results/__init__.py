"""The result backend: results of tasks as jobs with a key, and notifications to those that wait for them."""
