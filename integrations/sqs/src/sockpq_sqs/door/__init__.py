"""The HTTP server in front of the engine: connections and their limits, requests to calls, pages for operators."""

from sockpq_sqs.door.door import Door

__all__ = ["Door"]
