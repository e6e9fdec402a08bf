"""The room push of sockpq-http."""
