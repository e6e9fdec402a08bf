"""integrations/sqs."""
