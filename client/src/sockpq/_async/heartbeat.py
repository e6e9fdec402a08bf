"""Heartbeats: a task renews the leases of the jobs in progress, every third of a lease."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic

from sockpq._async.job import Job
from sockpq._routing.router import Router
from sockpq._streaming.lease_renewals import LeaseRenewals


class Heartbeat:
    """Renews the leases of the jobs of one loop."""

    def __init__(self, router: Router, expire: float, *, uncharged: bool = False) -> None:
        """`expire`: the lease, in seconds; `uncharged`: see LeaseRenewals."""
        self._beats: LeaseRenewals[Job] = LeaseRenewals(router, expire, uncharged=uncharged)
        self._changed = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def begin(self, job: Job) -> None:
        """Renew the lease of this job from now on."""
        self._beats.begin(job, monotonic())
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._beat(), name="sockpq heartbeat")

    def end(self, job: Job) -> None:
        """Stop renewing the lease of this job."""
        self._beats.end(job)

    def is_doubtful(self, job: Job) -> bool:
        """Return whether its lease may have ended because it could not be renewed in time."""
        return self._beats.is_doubtful(job, monotonic())

    def is_hopeless(self) -> bool:
        """Return whether check() will raise."""
        return self._beats.failure is not None

    def check(self) -> None:
        """Raise the error that makes heartbeats hopeless, if there is one.

        Finished jobs are reported first, as their work is done.
        """
        self._beats.check()

    async def stop(self) -> None:
        """End the task that renews leases."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _beat(self) -> None:
        while True:
            self._changed.clear()
            left = self._beats.left(monotonic())
            if left is None or left > 0:
                with suppress(TimeoutError):
                    async with asyncio.timeout(left):
                        await self._changed.wait()
            else:
                await self._beats.beat(monotonic())
