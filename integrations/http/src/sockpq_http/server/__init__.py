"""The program behind `sockpq-http serve`: its application, the limits of connections, metrics, and its end."""
