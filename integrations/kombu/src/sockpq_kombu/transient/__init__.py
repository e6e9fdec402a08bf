"""Transient messages for current listeners: Celery's events and remote control, by NOTIFY."""
