"""`manage.py sockpq_worker`, `sockpq_relay` and `sockpq_prune`."""
