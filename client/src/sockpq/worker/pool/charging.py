"""Chooses the jobs whose run time is reported to the server, because it shares time among groups (FAIR).

Without that a group is charged for the time since the hand-out, in which a job may have waited here for a child.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from sockpq._async.client import Client
from sockpq.errors import QueueNotFound, SockpqError
from sockpq.model import Handed

LOG = logging.getLogger("sockpq.worker")

FAIR = "fair"
LOOK_S = 60.0           # how often the settings of queues, and of the cluster, are looked at
ANSWER_S = 10.0


class Charging:
    """Checks whether queues, or the cluster, choose by fair shares; jobs with a group are always reported."""

    def __init__(self) -> None:
        self._fair: frozenset[str] = frozenset()
        self._always = False

    def is_reported(self, job: Handed, by: str | None) -> bool:
        """Return whether its run time is reported. `by`: how the pool asks the server to choose."""
        if by == FAIR or (by is None and self._always):
            return True
        return job.queue in self._fair or (job.meta is not None and job.meta.group is not None)

    async def look(self, client: Client, queues: tuple[str, ...]) -> None:
        """Find out which of these queues choose by fair shares, or whether the cluster does. Raises SockpqError."""
        self._always = (await client.config(timeout=ANSWER_S)).get("policy", "").lower() == FAIR
        fair = set()
        for queue in queues:
            try:
                settings = await client.queue_config(queue, timeout=ANSWER_S)
            except QueueNotFound:
                continue
            if settings.get("sched", "").lower() == FAIR:
                fair.add(queue)
        self._fair = frozenset(fair)

    async def keep_looking(self, client: Client, queues: Callable[[], tuple[str, ...]]) -> None:
        """Check again periodically; without permission, keep the previous answers."""
        while True:
            try:
                await self.look(client, queues())
            except SockpqError as error:
                LOG.debug("nobody tells which queues have fair shares: %s", error)
            await asyncio.sleep(LOOK_S)
