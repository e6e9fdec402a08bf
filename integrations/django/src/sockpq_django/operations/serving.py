"""The app that pqworker runs for a backend: a handler for each of its queues."""

from __future__ import annotations

import os
import socket
import threading

from django.db import close_old_connections, connections, reset_queries
from sockpq import Job
from sockpq.worker import App

from sockpq_django.backend import SockpqBackend
from sockpq_django.configuration.queues import set_up_queues
from sockpq_django.work.attempt import LOSSES_MAX
from sockpq_django.work.processing import process

BACKEND = "SOCKPQ_DJANGO_BACKEND"       # the variable with the alias of the backend, from manage.py sockpq_worker
LEASE_S = 60.0                          # which pqworker renews; after the death of a worker, the longest wait
HOST_MAX = 50


def worker_app(backend: SockpqBackend) -> App:
    """Return an app with a handler for each queue of the backend."""
    settings = backend.settings
    app = App(**settings.client)
    for queue in sorted(backend.queues):
        app.handler(
            backend.queue(queue), expire=LEASE_S, tries=settings.tries + LOSSES_MAX, backoff=settings.backoff
        )(TaskHandler(backend, app, queue))

    @app.on_child_start
    def start() -> None:
        connections.close_all()         # a child must not use its parent's
        set_up_queues(app.client, settings, backend.queues)

    return app


class TaskHandler:
    """Runs the tasks of one queue. `queue`: as Django names it."""

    def __init__(self, backend: SockpqBackend, app: App, queue: str) -> None:
        self._backend = backend
        self._app = app
        self._queue = queue

    def __call__(self, job: Job) -> None:
        """Run the task of this job."""
        renew_connections()
        try:
            process(self._backend, self._app.client, job, self._queue, worker_id())
        finally:
            renew_connections()


def worker_id() -> str:
    """Return the name of this process for the `worker_ids` of results: its host and its process id."""
    return f"{socket.gethostname()[:HOST_MAX]}-{os.getpid()}"


def renew_connections() -> None:
    """Clean up as Django does between requests: forget queries, and close connections that are broken or too old."""
    reset_queries()
    if threading.current_thread() is threading.main_thread():
        close_old_connections()
    else:
        connections.close_all()         # the thread may be gone after its task
