"""The totals of all tubes, which this program counts queue by queue; if that takes long, once for all connections."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from sockpq import QueueNotFound
from sockpq.aio import Client

from sockpqd.beanstalk import calls

LONG_S = 0.1                # sums that took longer are reused for a while,
VALID_FACTOR = 9            # this many times as long as they took: counting takes a tenth of the time at most

Counted = tuple[calls.Sums, frozenset[str]]


class SharedSums:
    """The sums of the last count, and the names of the tubes with jobs."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._counting: asyncio.Task[Counted] | None = None
        self._began = self._took_s = 0.0

    async def get(self) -> Counted:
        """The current sums; if counting takes long, slightly older ones. Raises SockpqError."""
        came = time.monotonic()
        while True:
            counting = self._counting
            if counting is None or (counting.done() and (counting.exception() or self._is_over())):
                counting = self._counting = asyncio.get_running_loop().create_task(self._count())
            counted = await asyncio.shield(counting)
            if self._took_s > LONG_S or self._began >= came:
                return counted

    def _is_over(self) -> bool:
        return time.monotonic() - self._began > (1 + VALID_FACTOR) * self._took_s or self._took_s <= LONG_S

    async def _count(self) -> Counted:
        self._began = time.monotonic()
        ready = reserved = delayed = buried = urgent = 0
        tubes = set()
        for queue in await self._client.queues():
            ready += queue.ready
            reserved += queue.running
            delayed += queue.delayed
            buried += queue.buried
            if queue.ready or queue.running or queue.delayed or queue.buried:
                tubes.add(queue.name)
            if queue.ready:
                with suppress(QueueNotFound):
                    urgent += (await self._client.queue_stat(queue.name))["urgent"]
        self._took_s = time.monotonic() - self._began
        return calls.Sums(urgent, ready, reserved, delayed, buried), frozenset(tubes)
