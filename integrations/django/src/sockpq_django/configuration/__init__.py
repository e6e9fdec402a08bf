"""The settings of a backend: its OPTIONS, their checks for `manage.py check`, its clients and queues."""
