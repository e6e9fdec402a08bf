"""sockpq_sqs.moves."""
