"""Dramatiq's own tests with this broker: `python -m tests.dramatiq.upstream`."""
