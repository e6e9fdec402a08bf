"""The costs of events, their delays, and how many subscribers get them."""
