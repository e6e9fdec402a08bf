"""A worker of tests, in the thread of the test: it works off what there is, so that a test sees each state between."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from sockpq import Client
from sockpq._backends.sync import run
from sockpq._protocol.command import Command
from sockpq._protocol.commands import jobs
from sockpq._routing.router import Router
from sockpq.model import Handed
from sockpq.worker import App
from sockpq.worker.children.serving import Serving
from sockpq.worker.pool.outcome_commands import end_job

RAN: list[Any] = []      # what the tasks have done
TURNS = 20      # more than any of these flows needs until what was decided in one entry has followed in others


class Timed(Protocol):
    """A server, or several, that passes time."""

    def pass_time(self, seconds: float) -> None:
        """Let this time pass, and all happen that is due."""
        ...


class Worker:
    """Works on the jobs of an app."""

    def __init__(self, server: Timed, app: App) -> None:
        self._server, self._queues = server, app.queues
        self._router = app.client._router
        self._serving = Serving(app)

    def take(self) -> Handed | None:
        """Take the next job, if there is one after all automatic transitions."""
        for _ in range(TURNS):
            if job := run(self._router.run(jobs.get(self._queues, expire=60, meta=True))):
                return job
            self._server.pass_time(0)
        return None

    def work(self, job: Handed) -> None:
        """Work on a job that was taken."""
        outcome = self._serving.work(job)
        if outcome.kind != "ended":
            run(end_job(self._router, job, outcome, 30))

    def work_off(self) -> None:
        """Work until nothing is ready."""
        while job := self.take():
            self.work(job)

    def close(self) -> None:
        self._serving.close()


@contextmanager
def at_work(server: Timed, app: App) -> Iterator[Worker]:
    """A worker of this app, closed at the end."""
    worker = Worker(server, app)
    try:
        yield worker
    finally:
        worker.close()


class Death(BaseException):
    """The death of the author: nothing of it runs any more."""


class Dying:
    """A router whose process dies at its call number `at` (0, 1, ..), before or after the servers execute it."""

    def __init__(self, router: Router, at: int, executed: bool, death: type[BaseException] = Death) -> None:
        self.bodies, self.limits = router.bodies, router.limits
        self.calls = 0
        self._router, self._at, self._executed, self._death = router, at, executed, death

    async def run(self, command: Command[Any], **options: Any) -> Any:
        self.calls += 1
        dies = self.calls - 1 == self._at
        if dies and not self._executed:
            raise self._death("before")
        value = await self._router.run(command, **options)
        if dies:
            raise self._death("behind")
        return value

    async def owner_of(self, queues: tuple[str, ...]) -> str:
        """Return the owner without a command to the servers."""
        return await self._router.owner_of(queues)


def left_over(client: Client) -> tuple[int, list[Any]]:
    """Return the number of unfinished jobs, dead ones included, and the items."""
    return len(list(client.find())), client.items()


def call(app: App, name: str) -> Any:
    """Return the task of this name; Any, as these tests pass arguments that the types forbid."""
    return app.tasks[name]
