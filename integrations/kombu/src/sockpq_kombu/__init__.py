"""Celery and kombu on sockpqd. Nothing is to be imported: `sockpq://host:port` works once this is installed."""
