"""sockpq_sqs.queues."""
