"""The jobs of an app in memory, for tests without a server: they are kept, and processed when the test asks for it.

It replaces the client of the app, and does not imitate the server. It lets the tests of a program put, run, fail and
retry tasks as workers do. For everything else there is `testing.Server`.
"""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from sockpq.errors import JobExists, JobNotFound, NoOutput
from sockpq.model import Awaited, Meta, Number, PeekedJob, Stored
from sockpq.worker.app import App
from sockpq.worker.execution import run
from sockpq.worker.failures import log_attempt
from sockpq.worker.outcome import Outcome

RUNS_MAX = 10_000       # tasks that put each other for ever


class InlineJob:
    """A job in memory, as passed to a task."""

    def __init__(
        self, number: int, queue: str, data: bytes, priority: int, item: str | None, key: str | None,
        options: dict[str, Any],
    ) -> None:
        """`options`: the other options of the put()."""
        self.id = number
        self.queue = queue
        self.data = data
        self.priority = priority
        self.item = item
        self.lost = False
        self.meta = Meta(
            key, 0, None, None, group=options.get("group"), number=number if options.get("number") else None
        )
        self.options = options
        self.headers: dict[str, str] = dict(options.get("headers") or {})
        self._ended = False

    @property
    def text(self) -> str:
        return self.data.decode()

    def json(self) -> Any:
        return json.loads(self.data)

    @property
    def key(self) -> str | None:
        return self.meta.key

    @property
    def number(self) -> int | None:
        return self.meta.number

    @property
    def group(self) -> str | None:
        return self.meta.group

    @property
    def attempt(self) -> int:
        return self.meta.attempt

    @property
    def reason(self) -> str | None:
        return self.meta.reason

    def progress(self, percent: int) -> None:
        pass

    def done(self) -> None:
        self._ended = True


class Ran(NamedTuple):
    """One attempt: the job, and its outcome."""

    job: InlineJob
    outcome: Outcome


class Inline:
    """The queues of an app in memory. Times do not count: a job that was put for tomorrow is run at once."""

    def __init__(self, app: App) -> None:
        self.app = app
        self.jobs: list[InlineJob] = []     # those that wait
        self.dead: list[Ran] = []
        self._ends: dict[int, Awaited] = {}     # by the number of the job
        self._numbers = itertools.count(1)

    def run(self) -> list[Ran]:
        """Process all jobs, and the jobs that these put, with all their tries, until none is left.

        Returns the attempts.
        """
        ran: list[Ran] = []
        while self.jobs:
            if len(ran) == RUNS_MAX:
                raise RuntimeError(f"after {RUNS_MAX} attempts there are still jobs")
            ran.append(self._run_next())
        return ran

    # the calls of an app's client

    def put(
        self, queue: str, data: bytes, priority: int = 0, item: str | None = None, *, key: str | None = None,
        on_duplicate: str | None = None, **options: Any,
    ) -> Stored:
        """Keep a job; raises JobExists as the client does."""
        if key is not None and any(job.queue == queue and job.key == key for job in self.jobs):
            if on_duplicate == "ignore":
                return Stored(item, key, "exists")
            if on_duplicate != "replace":
                raise JobExists(f"409 Job Exists: {key}")
            self.jobs = [job for job in self.jobs if not (job.queue == queue and job.key == key)]
        job = InlineJob(next(self._numbers), queue, data, priority, item, key, options)
        self.jobs.append(job)
        return Stored(item, key, number=job.number)

    def end_of(self, number: int) -> Awaited | None:
        """Return the end of a job; None when it waits. Raises JobNotFound."""
        if number in self._ends:
            return self._ends[number]
        if not any(job.id == number for job in self.jobs):
            raise JobNotFound("404 Job Not Found")
        return None

    def look(self, number: int) -> PeekedJob | None:
        """Return the job in its state; None if there is none with this number."""
        waiting = next((job for job in self.jobs if job.id == number), None)
        if waiting:
            meta = waiting.meta
            return PeekedJob(
                None, waiting.queue, waiting.priority, waiting.data, "ready", waiting.item, meta.key, meta.attempt,
                None, None, number=number, group=meta.group,
            )
        end = self._ends.get(number)
        return end and PeekedJob(None, "", 0, b"", end.state, None, None, 0, None, None, number=number)

    def cancel(self, number: int) -> None:
        """Remove a waiting job. Raises JobNotFound."""
        if self.end_of(number) is not None:
            raise JobNotFound("404 Job Not Found")
        self.jobs = [job for job in self.jobs if job.id != number]
        self._ends[number] = Awaited("cancelled", b"")

    def called(
        self, queue: str, data: bytes, output: str, priority: int, await_: Callable[[Any], Any]
    ) -> InlineJob:
        """Put a job and run it to its end; returns its output."""
        number = next(self._numbers)
        job = InlineJob(number, queue, data, priority, f"call_{number}", None, {})
        while (ran := self._attempt(job, await_)).outcome.kind == "later":
            pass
        if ran.outcome.result is None:
            raise NoOutput("the task has ended its job itself, without a result", f"call_{number}")
        return InlineJob(next(self._numbers), output, ran.outcome.result, 0, job.item, None, {})

    def _run_next(self) -> Ran:
        job = max(self.jobs, key=lambda one: one.priority)      # of several the one that came first
        self.jobs.remove(job)
        ran = self._attempt(job, asyncio.run)
        if ran.outcome.kind == "later":
            self.jobs.append(job)
        return ran

    def _attempt(self, job: InlineJob, await_: Callable[[Any], Any]) -> Ran:
        job.meta = job.meta._replace(attempt=job.meta.attempt + 1)
        ran = Ran(job, run(self.app, job, lambda given, work: given, await_))
        log_attempt(job, ran.outcome)
        if ran.outcome.kind == "dead":
            self.dead.append(ran)
            text = ran.outcome.failure.text if ran.outcome.failure else ""
            self._ends[job.id] = Awaited("dead", text.encode())
        elif ran.outcome.kind != "later":
            self._ends[job.id] = Awaited("done", ran.outcome.returned or b"")
        return ran


class _Client:
    """The blocking client of an app whose jobs are in memory."""

    def __init__(self, jobs: Inline) -> None:
        self._jobs = jobs
        self.as_async = _AsyncClient(jobs)

    def put(self, queue: str, data: bytes, *args: Any, timeout: float | None = None, **options: Any) -> Stored:
        return self._jobs.put(queue, data, *args, **options)

    def ended(self, number: int) -> PeekedJob | None:
        return self._jobs.look(number)

    def await_job(self, number: int, *, wait: float | None = None) -> Awaited | None:
        return self._jobs.end_of(number)        # nothing ends a job while this waits

    def delete(self, number: Number) -> None:
        self._jobs.cancel(number.number)

    @contextmanager
    def call(self, queue: str, data: bytes, output: str, **options: Any) -> Iterator[InlineJob]:
        yield self._jobs.called(queue, data, output, options.get("priority", 0), asyncio.run)


class _AsyncClient:
    """The asyncio form of the inline client."""

    def __init__(self, jobs: Inline) -> None:
        self._jobs = jobs

    async def put(self, queue: str, data: bytes, *args: Any, timeout: float | None = None, **options: Any) -> Stored:
        return self._jobs.put(queue, data, *args, **options)

    async def ended(self, number: int) -> PeekedJob | None:
        return self._jobs.look(number)

    async def await_job(self, number: int, *, wait: float | None = None) -> Awaited | None:
        return self._jobs.end_of(number)

    async def delete(self, number: Number) -> None:
        self._jobs.cancel(number.number)

    @asynccontextmanager
    async def call(self, queue: str, data: bytes, output: str, **options: Any) -> AsyncIterator[InlineJob]:
        yield await asyncio.to_thread(
            self._jobs.called, queue, data, output, options.get("priority", 0), asyncio.run
        )


@contextmanager
def inline(app: App) -> Iterator[Inline]:
    """`with inline(app) as jobs: program(); jobs.run()`: within the block the app needs no server."""
    jobs = Inline(app)
    before, app.stand_in = app.stand_in, _Client(jobs)
    try:
        yield jobs
    finally:
        app.stand_in = before
