"""Celery and kombu on sockpqd. There is nothing to import: `sockpq://host:port` works once this is installed."""
