"""A kombu channel: its calls, deliveries to its consumers, and unacknowledged messages."""
