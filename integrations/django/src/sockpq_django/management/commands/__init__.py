"""`manage.py sockpq_worker` and `manage.py sockpq_relay`."""
