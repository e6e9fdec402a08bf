"""The settings that the queues of a backend need in the cluster; its workers apply them."""

from __future__ import annotations

import logging
from collections.abc import Iterable

from sockpq import Client, ForbiddenError, QueueNotFound

from sockpq_django.configuration.options import TaskOptions
from sockpq_django.tasks.names import queue_of

LOG = logging.getLogger("sockpq_django")


def set_up_queues(client: Client, settings: TaskOptions, queues: Iterable[str]) -> None:
    """Let these queues (as Django names them) keep the records of ended tasks for `retention` seconds, or longer.

    Without the right to do so a line in the log says what an operator has to do. Raises SockpqError.
    """
    if not settings.retention:
        return
    for queue in queues:
        name = queue_of(queue, settings.prefix)
        try:
            try:
                kept = float(client.queue_config(name).get("retain", 0))
            except QueueNotFound:
                kept = 0.0
            if kept < settings.retention:
                client.queue_config(name, retain=settings.retention)
        except ForbiddenError:
            LOG.warning(
                "the user of this worker may not set up queue %s, so the results of its tasks may not be kept; "
                "an operator has to: pqctl queue config %s --retain %g", name, name, settings.retention,
            )
