"""integrations/outbox."""
