"""A channel of kombu's: its calls, deliveries to its consumers, and unacknowledged messages."""
