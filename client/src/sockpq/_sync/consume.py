"""The loop of a worker: one job after the other."""

# Made from _async/consume.py by client/tools/faces.py: edit there.

from __future__ import annotations

from collections.abc import Iterator

from sockpq._backends.sync import run
from sockpq._engine.executor import Executor
from sockpq._protocol.command import Command
from sockpq._sync.heartbeat import Heartbeat
from sockpq._sync.job import Job
from sockpq.model import Handed


def consume(
    executor: Executor,
    command: Command[Handed | None],
    wait: float | None,
    timeout: float | None,
    beat: Heartbeat | None,
    current: list[Job],
) -> Iterator[Job]:
    """Take a job, have it worked on, end it, and so on. `current`: the job that is being worked on."""
    try:
        while handed := run(executor.run(command, timeout=timeout, wait=wait)):
            job = Job(executor, handed)
            current[:] = [job]
            with job:
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
            beat.stop()
