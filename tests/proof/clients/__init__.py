"""Clients in addition to the load of the chaos tests, each with its own judge: for awaited results, and for Celery."""
