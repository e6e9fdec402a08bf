"""integrations/http."""
