"""integrations/django."""
