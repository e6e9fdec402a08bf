"""A consumer: takes jobs that are bound to a session of its own."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType

from sockpq._async.job import Job
from sockpq._async.keepalive import KeepAlive
from sockpq._backends.asyncio import run
from sockpq._protocol.arguments import Block, MetaWanted, Policy, integer
from sockpq._protocol.commands import batches
from sockpq._routing.router import Router
from sockpq._streaming.bound_sessions import BoundSessions


class Consumer:
    """Takes jobs that stay here as long as this process lives, without leases. See Client.consumer.

    For one thread or task at a time, except `wake`.
    """

    def __init__(self, router: Router, ttl: float) -> None:
        """`ttl`: the time to live of the session in seconds."""
        self._router = router
        self._session = BoundSessions(router, ttl)
        self._keep_alive = KeepAlive(self._session)

    async def get_many(
        self,
        count: int,
        queues: str | Iterable[str] | None = None,
        *,
        block: Block = True,
        wait: float | None = None,
        item: str | None = None,
        meta: MetaWanted = False,
        headers: bool = False,
        policy: Policy | None = None,
        timeout: float | None = None,
    ) -> list[Job]:
        """Take up to `count` jobs, as Client.get_many does; [] when there is none, or when wake() was called."""
        count = integer(count, "count", 1, batches.BATCH_JOBS_MAX)
        command = batches.get_batch(
            count, batches.as_queues(queues), block, None, None, wait, item=item, meta=meta,
            headers=self._router.asks_for(headers), policy=policy, bound=True,
        )
        self._keep_alive.start()
        return [Job(self._router, one) for one in await run(self._session.take(command, wait, timeout))]

    def wake(self) -> None:
        """Make the waiting get_many() return now, or else the next one at once. Any thread may call it."""
        self._session.wake()

    async def __aenter__(self) -> Consumer:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """End the session: jobs that were not ended go back to their places. In a forked child nothing happens."""
        if self._session.inherited:
            return
        await self._keep_alive.stop()
        await run(self._session.close())
