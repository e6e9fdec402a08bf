"""Access: credentials of requests, clients for each user, names of this host."""
