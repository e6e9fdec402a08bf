"""integrations/kombu: the transport and the result backend."""
