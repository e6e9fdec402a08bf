"""A real toxiproxy between all processes: the server, its proxies, and its API."""
