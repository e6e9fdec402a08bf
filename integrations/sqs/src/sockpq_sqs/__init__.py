"""The protocol of Amazon SQS on sockpqd: every AWS SDK, unmodified."""
