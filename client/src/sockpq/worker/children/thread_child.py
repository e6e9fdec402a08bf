"""A child that is a thread of the pool's process: cheap, for tasks that wait most of the time. It cannot be killed."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from time import monotonic

from sockpq.model import Handed
from sockpq.worker.app import App
from sockpq.worker.children.child import Parent, Result, Usage
from sockpq.worker.children.serving import Serving

LOG = logging.getLogger("sockpq.worker")


class ThreadChild:
    """kill() abandons the thread: anything it still does has no effect on its job."""

    def __init__(self, number: int, app: App, soft_time_limit: float | None, parent: Parent) -> None:
        self.number = number
        self._app = app
        self._soft_time_limit = soft_time_limit
        self._parent = parent
        self._loop = asyncio.get_running_loop()
        self._jobs: queue.SimpleQueue[tuple[Handed, float, bool] | None] = queue.SimpleQueue()
        self._abandoned = False
        self._serving: Serving | None = None

    def start(self) -> None:
        threading.Thread(target=self._run, name=f"sockpq child {self.number}", daemon=True).start()

    def give(self, jobs: Sequence[Handed], until: float, timed: Set[int]) -> None:
        """Process these jobs one after another."""
        for job in jobs:
            self._jobs.put((job, until, job.id in timed))

    def take_back(self) -> set[int]:
        """Take back the jobs that the thread has not begun."""
        ids = set()
        with suppress(queue.Empty):
            while given := self._jobs.get_nowait():
                ids.add(given[0].id)
            self._jobs.put(None)
        return ids

    def cancel(self, job: int) -> bool:
        """Let the next call of the library raise JobCancelled; an async function is cancelled at once."""
        if self._serving:
            self._serving.cancel(job)
        return False

    def stop(self) -> None:
        """End when there is no job."""
        self._jobs.put(None)

    def kill(self) -> None:
        """Abandon it: its messages are ignored from now on."""
        if not self._abandoned:
            self._abandoned = True
            self._jobs.put(None)
            self._loop.call_soon(self._parent.gone, self.number, "abandoned")

    def _run(self) -> None:
        why = "stopped"
        try:
            self._serving = serving = Serving(self._app, self._soft_time_limit)
            serving.start()
            self._tell(lambda: self._parent.ready(self.number))
            while given := self._jobs.get():
                self._work(serving, *given)
            serving.close()
        except BaseException as error:
            LOG.exception("a thread of the pool has ended")
            why = f"{type(error).__name__}: {error}"
        self._tell(lambda: self._parent.gone(self.number, why))

    def _work(self, serving: Serving, job: Handed, until: float, timed: bool) -> None:
        outcome = serving.work(job, timed) if monotonic() < until else None
        self._tell(lambda: self._parent.ended(self.number, [Result(job.id, outcome, Usage())]))

    def _tell(self, news: Callable[[], None]) -> None:
        def tell() -> None:
            if not self._abandoned:
                news()

        try:
            self._loop.call_soon_threadsafe(tell)
        except RuntimeError:        # the pool has ended meanwhile, and its loop with it
            self._abandoned = True
