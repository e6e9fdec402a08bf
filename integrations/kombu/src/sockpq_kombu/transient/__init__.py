"""Messages that are of use to who listens now and to nobody later: Celery's events and remote control, by NOTIFY."""
