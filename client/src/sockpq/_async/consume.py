"""The loop of a worker: one job after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator

from sockpq._async.heartbeat import Heartbeat
from sockpq._async.job import Job
from sockpq._backends.asyncio import run
from sockpq._engine.executor import Executor
from sockpq._protocol.command import Command
from sockpq.model import Handed


async def consume(
    executor: Executor,
    command: Command[Handed | None],
    wait: float | None,
    timeout: float | None,
    beat: Heartbeat | None,
    current: list[Job],
) -> AsyncIterator[Job]:
    """Take a job, have it worked on, end it, and so on. `current`: the job that is being worked on."""
    try:
        while handed := await run(executor.run(command, timeout=timeout, wait=wait)):
            job = Job(executor, handed)
            current[:] = [job]
            async with job:
                if beat:
                    beat.begin(job)
                try:
                    yield job
                finally:
                    if beat:
                        beat.end(job)
            if beat:
                beat.check()
    finally:
        if beat:
            await beat.stop()
