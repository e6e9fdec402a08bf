"""What judges a simulated run: each promise by an account of its own, kept from the history of entries and replies."""
