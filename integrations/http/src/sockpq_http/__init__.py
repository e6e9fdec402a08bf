"""sockpqd over HTTP: REST with an OpenAPI document, and push."""
