"""sockpq_sqs.messages."""
