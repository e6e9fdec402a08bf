"""Django's tasks on sockpqd: backend, worker, admin pages, and enqueueing within the transaction.

    TASKS = {"default": {"BACKEND": "sockpq_django.SockpqBackend", "OPTIONS": {"SERVERS": "db1:11361"}}}

docs/DJANGO.md of the project describes it.
"""

from sockpq_django.backend import SockpqBackend
from sockpq_django.backends import cancel
from sockpq_django.database.inbox import once
from sockpq_django.errors import TaskCancelled, TaskExpired, TaskRefused, TaskUnknown, WorkerLost

__all__ = [
    "SockpqBackend", "TaskCancelled", "TaskExpired", "TaskRefused", "TaskUnknown", "WorkerLost", "cancel", "once",
]
