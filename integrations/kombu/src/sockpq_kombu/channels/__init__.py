"""A channel of kombu's: its calls, what is delivered to its consumers, and what they have not acknowledged."""
