"""Django's tasks on sockpqd: backend, worker, admin pages, and enqueueing within the transaction."""
