"""An outbox and an inbox for sockpqd in your own database: from COMMIT to effect, exactly once."""
