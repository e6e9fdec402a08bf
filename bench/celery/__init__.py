"""Celery on sockpqd, Redis and RabbitMQ compared, in turn on one machine, each with servers of its own."""
