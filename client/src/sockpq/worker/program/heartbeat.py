"""The worker says what it is doing (WORKER), and hears what an operator wants of it: bounds, a pause, its end."""

from __future__ import annotations

import asyncio
import logging
from typing import Protocol

from sockpq._async.client import Client
from sockpq.errors import BadArguments, NotSupported, SockpqError
from sockpq.model import WorkerBounds

LOG = logging.getLogger("sockpq.worker")

CALL_S = 10.0
SESSION_S = 15.0        # a worker that says nothing for so long is not listed any more
RETRY_S = 60.0          # servers that know no workers may be replaced


class Steered(Protocol):
    """A pool."""

    @property
    def bounds(self) -> tuple[int, int]:
        """The most and the least children."""
        ...

    @property
    def busy(self) -> int:
        """Children at work."""
        ...

    def set_bounds(self, most: int | None, least: int | None) -> None:
        """Other bounds."""
        ...

    def pause(self, paused: bool = True) -> None:
        """Take no more jobs, or go on."""
        ...

    def stop(self) -> None:
        """Finish what runs, and end."""
        ...


class Heartbeat:
    """Follows wishes as they change: what the worker was told by its own means in between stays."""

    def __init__(self, pool: Steered, name: str) -> None:
        self._pool = pool
        self._name = name
        self._last = WorkerBounds(None, None, "run")

    async def run(self, client: Client, period: float) -> None:
        """Say it again and again. `client`: its own, with a short session, which ends with the worker."""
        while True:
            pause = period
            try:
                self.follow(
                    await client.worker_beat(self._name, self._pool.bounds[0], self._pool.busy, timeout=CALL_S)
                )
            except NotSupported:
                pause = RETRY_S
            except SockpqError as error:
                LOG.warning("no heartbeat: %s", error)
            await asyncio.sleep(pause)

    def follow(self, wish: WorkerBounds) -> None:
        """Do what an operator wants."""
        before, self._last = self._last, wish
        if (wish.most, wish.least) != (before.most, before.least):
            try:
                self._pool.set_bounds(wish.most, wish.least)
            except BadArguments as error:
                LOG.warning("WORKER SET: %s", error)
        if wish.state == before.state:
            return
        LOG.info("an operator says %s", wish.state)
        if wish.state == "stop":
            self._pool.stop()
        else:
            self._pool.pause(wish.state == "pause")
