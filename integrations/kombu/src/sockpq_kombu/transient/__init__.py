"""Messages for current listeners, of no use later: Celery's events and remote control, by NOTIFY."""
