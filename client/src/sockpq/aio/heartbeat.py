"""While a job is worked on its lease is made to begin anew every third of it: by a task, for the asyncio client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Any

from sockpq.aio.job import Job
from sockpq.errors import JobNotFound, SockpqError
from sockpq.heartbeat import BEATS_PER_LEASE, HOPELESS

if TYPE_CHECKING:
    from sockpq.calls import Calls


@asynccontextmanager
async def kept_alive(
    calls: Calls[Any], job: Job, expire: float, failures: list[SockpqError]
) -> AsyncIterator[None]:
    """Keep this job, with a lease of `expire` seconds, alive in the block.

    What makes heartbeats hopeless is added to `failures`, to be raised when the job is ended: its work is done.
    """
    task = asyncio.create_task(_beat(calls, job, expire / BEATS_PER_LEASE, failures), name="sockpq heartbeat")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _beat(calls: Calls[Any], job: Job, period: float, failures: list[SockpqError]) -> None:
    while True:
        await asyncio.sleep(period)
        if job._ended:
            return
        try:
            await calls.touch(job.id, timeout=period)
        except JobNotFound:
            job.lost = not job._ended       # it may have been ended meanwhile
            return
        except HOPELESS as failure:
            failures.append(failure)
            return
        except SockpqError:                 # nobody serves just now: the next beat may do
            continue
