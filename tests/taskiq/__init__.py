"""integrations/taskiq."""
