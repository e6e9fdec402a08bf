"""integrations/dramatiq."""
