"""Idempotency-Key: a request that is repeated with the same key is executed once, whichever instance it reaches."""
