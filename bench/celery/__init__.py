"""Celery on sockpqd beside Redis and RabbitMQ, in turn on one machine, each with servers of its own."""
