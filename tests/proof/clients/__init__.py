"""Clients beside the load of the chaos tests, each with a judge of its own: those that wait for results, and Celery."""
