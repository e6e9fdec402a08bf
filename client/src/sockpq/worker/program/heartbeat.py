"""Reports the state of the worker (WORKER), and follows the operator's orders: bounds, pause, stop.

The answer to a heartbeat has the orders. An event announces a change, after which the next heartbeat is sent at once;
where events are missed (an older server, a lost connection), the next regular heartbeat brings it.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Protocol

from sockpq._async.client import Client
from sockpq.errors import BadArguments, EventsLost, NotSupported, SockpqError, WorkerExists
from sockpq.model import WorkerBounds

LOG = logging.getLogger("sockpq.worker")

CALL_S = 10.0
FIRST_CALL_S = 2.0      # of the first one: the person that starts a worker should learn soon that no server answers
SESSION_S = 15.0        # a worker that says nothing for this long is no longer listed
RETRY_S = 60.0          # servers that know no workers, or no events, may be replaced
LISTEN_PAUSE_S = 2.0    # after a failure to hear events


class Steered(Protocol):
    """The pool that heartbeats report and control."""

    @property
    def size(self) -> int:
        """The number of its children."""
        ...

    @property
    def busy(self) -> int:
        """The number of children that have jobs."""
        ...

    def set_bounds(self, most: int | None, least: int | None) -> None:
        """Change the bounds of the number of children."""
        ...

    def pause(self, paused: bool = True) -> None:
        """Take no more jobs, or resume."""
        ...

    def stop(self) -> None:
        """Finish running jobs, and end."""
        ...


class Heartbeat:
    """Applies orders when they change, so settings changed by other means in between stay."""

    def __init__(self, pool: Steered, name: str) -> None:
        self._pool = pool
        self._name = name
        self._last = WorkerBounds(None, None, "run")
        self._wanted = asyncio.Event()
        self._foreign = False           # another session has the name

    async def run(self, client: Client, period: float) -> None:
        """Send heartbeats until cancelled. `client`: its own, with a short session, which ends with the worker."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._beat(client, period))
            tasks.create_task(self._listen(client))

    async def _beat(self, client: Client, period: float) -> None:
        timeout = FIRST_CALL_S
        while True:
            pause = period
            try:
                self.follow(
                    await client.worker_beat(self._name, self._pool.size, self._pool.busy, timeout=timeout)
                )
                self._foreign = False
            except WorkerExists:
                self._complain()
            except NotSupported:
                pause = RETRY_S
            except SockpqError as error:
                LOG.warning("no server has taken this worker's heartbeat, which is sent again: %s", error)
            timeout = CALL_S
            with suppress(TimeoutError):
                await asyncio.wait_for(self._wanted.wait(), pause)
            self._wanted.clear()

    def _complain(self) -> None:
        """Log once that another worker has the name: this one works without it, and gets it as soon as it is free."""
        if not self._foreign:
            self._foreign = True
            LOG.warning(
                "a worker of the name %s is there already: `pqctl worker` shows and steers that one until it has ended "
                "(%.0f s after its death); if it is alive, start each with a --name of its own", self._name, SESSION_S,
            )

    async def _listen(self, client: Client) -> None:
        """Send a heartbeat when an operator has given an order."""
        while True:
            pause = LISTEN_PAUSE_S
            try:
                async with client.events("WORKER", self._name) as events:
                    async for _ in events:
                        self._wanted.set()
            except EventsLost:
                self._wanted.set()
                continue
            except NotSupported:
                pause = RETRY_S
            except SockpqError as error:
                LOG.debug("no events: %s", error)       # the heartbeat complains
            await asyncio.sleep(pause)

    def follow(self, wish: WorkerBounds) -> None:
        """Apply what an operator has set: bounds of the pool, and whether it runs, pauses or stops."""
        before, self._last = self._last, wish
        if (wish.most, wish.least) != (before.most, before.least):
            try:
                self._pool.set_bounds(wish.most, wish.least)
            except BadArguments as error:
                LOG.warning("WORKER SET: %s", error)
        if wish.state == before.state:
            return
        LOG.info("an operator says %s", "resume" if wish.state == "run" else wish.state)
        if wish.state == "stop":
            self._pool.stop()
        else:
            self._pool.pause(wish.state == "pause")
