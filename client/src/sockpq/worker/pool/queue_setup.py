"""Makes the settings of queues that tasks declare: how long ended jobs are kept, and the back-off.

The worker itself applies a task's back-off to errors of its function; as a setting of the queue it also applies when a
worker dies.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping

from sockpq._async.client import Client
from sockpq._protocol.commands.queues import BACKOFF_S_MAX, QueueSettings, queue_config
from sockpq.errors import ForbiddenError, NotSupported, QueueNotFound
from sockpq.worker.app import App

LOG = logging.getLogger("sockpq.worker")

ANSWER_S = 10.0


def wanted(app: App, queue: str) -> QueueSettings:
    """Return the settings that the tasks and the handler of this queue ask for."""
    policies = app.policies_of(queue)
    settings: QueueSettings = {}
    if retain := max((policy.retain for policy in policies), default=0.0):
        settings["retain"] = retain
    first, longest = next((policy.backoff for policy in policies if policy.for_queue), (0.0, 0.0))
    if first and longest <= BACKOFF_S_MAX:
        settings["backoff"] = (first, longest)
    return settings


async def set_up(client: Client, app: App, queues: tuple[str, ...]) -> None:
    """Change the settings of these queues where they differ; a setting that is not permitted is logged.

    Raises SockpqError.
    """
    for queue in queues:
        settings = wanted(app, queue)
        if not settings:
            continue
        try:
            await _set_up(client, queue, settings)
        except ForbiddenError:
            LOG.warning("this worker may not set up queue %s; an operator has to, by %s", queue, line(queue, settings))
        except NotSupported as error:
            LOG.warning("queue %s keeps no jobs that have ended, and has no back-off: %s", queue, error)


async def _set_up(client: Client, queue: str, settings: QueueSettings) -> None:
    try:
        now = await client.queue_config(queue, timeout=ANSWER_S)
    except QueueNotFound:
        now = {}
    missing = lacking(settings, now)
    if missing:
        await client.queue_config(queue, **missing, timeout=ANSWER_S)
        LOG.info("queue %s is set up: %s", queue, line(queue, missing))


def lacking(settings: QueueSettings, now: Mapping[str, str]) -> QueueSettings:
    """Return the settings among these that a queue lacks. `now`: its current ones, in the protocol's words."""
    missing: QueueSettings = {}
    if "retain" in settings and settings["retain"] > float(now.get("retain", 0)):
        missing["retain"] = settings["retain"]      # the greatest wish counts
    if "backoff" in settings and [*settings["backoff"]] != _pauses(now.get("backoff", "OFF")):
        missing["backoff"] = settings["backoff"]
    return missing


def _pauses(told: str) -> list[float]:
    return [] if told == "OFF" else [float(word) for word in told.split()]


def line(queue: str, settings: QueueSettings) -> str:
    """Return the command for these settings, as an operator would write it."""
    return queue_config(queue, settings).before[0].line.decode().strip()
