"""Worker programs against each other: pqworker, Celery, RQ, dramatiq and huey, in turn on one machine."""
