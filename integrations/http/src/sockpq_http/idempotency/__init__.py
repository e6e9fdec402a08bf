"""Idempotency-Key: a request that is repeated with the same key is executed once, on whichever instance it comes."""
