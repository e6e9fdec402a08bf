"""sockpq_sqs.model."""
