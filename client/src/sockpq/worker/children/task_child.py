"""A child that is a task of an event loop in a separate thread: hundreds of them cost next to nothing."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Callable, Sequence, Set
from contextlib import suppress
from time import monotonic
from typing import Any

from sockpq._backends.stopwatch import stopwatch
from sockpq._sync.job import Job
from sockpq.model import Handed
from sockpq.worker.app import App
from sockpq.worker.children.child import Parent, Result, Usage
from sockpq.worker.children.serving import async_job, close_async, limited
from sockpq.worker.current import Cancellation
from sockpq.worker.errors import JobCancelled
from sockpq.worker.execution import Work, arun
from sockpq.worker.outcome import Outcome

CLOSE_S = 2.0


class TaskLoop:
    """The event loop shared by the tasks of one pool.

    It is not the pool's, so no task can delay a renewal of leases.
    """

    def __init__(self, app: App) -> None:
        self.app = app
        self.loop = asyncio.new_event_loop()
        self._begun: asyncio.Future[None] | None = None
        self._thread = threading.Thread(target=self._run, name="sockpq tasks", daemon=True)
        self._thread.start()

    def begin(self) -> concurrent.futures.Future[None]:
        """Call the app's start functions, once for all children; the future completes when they have returned."""
        return asyncio.run_coroutine_threadsafe(self._begin(), self.loop)

    def close(self) -> None:
        """End the loop, abandoning tasks that are stuck."""
        with suppress(concurrent.futures.TimeoutError, RuntimeError):
            asyncio.run_coroutine_threadsafe(close_async(self.app), self.loop).result(CLOSE_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_S)

    async def _begin(self) -> None:
        if self._begun is None:
            self._begun = asyncio.ensure_future(self._call_starts())
        await asyncio.shield(self._begun)

    async def _call_starts(self) -> None:
        for function in self.app.child_starts:
            value = function()
            if inspect.isawaitable(value):
                await value

    def _run(self) -> None:
        self.loop.run_forever()
        with suppress(RuntimeError):
            self.loop.run_until_complete(self.loop.shutdown_asyncgens())
        self.loop.close()


async def in_thread(function: Callable[[], Any]) -> Any:
    """Call it in a separate daemon thread which, unlike an executor's, does not keep the program from ending."""
    loop = asyncio.get_running_loop()
    called: asyncio.Future[Any] = loop.create_future()
    context = contextvars.copy_context()

    def settle(value: Any, error: BaseException | None) -> None:
        if called.done():
            return
        if error:
            called.set_exception(error)
        else:
            called.set_result(value)

    def call() -> None:
        value, error = None, None
        try:
            value = context.run(function)
        except BaseException as raised:
            # A future does not accept StopIteration, and other such exceptions must not end the task.
            is_end = isinstance(raised, Exception | JobCancelled) and not isinstance(raised, StopIteration)
            error = raised if is_end else RuntimeError(f"{type(raised).__name__}: {raised}")
        with suppress(RuntimeError):        # the loop has ended meanwhile
            loop.call_soon_threadsafe(settle, value, error)

    threading.Thread(target=call, name="sockpq call", daemon=True).start()
    return await called


class TaskChild:
    """One slot. Functions that are not async run in threads."""

    def __init__(self, number: int, tasks: TaskLoop, soft_time_limit: float | None, parent: Parent) -> None:
        self.number = number
        self._tasks = tasks
        self._limit = soft_time_limit
        self._parent = parent
        self._loop = asyncio.get_running_loop()
        self._work: concurrent.futures.Future[None] | None = None
        self._jobs: deque[tuple[Handed, float, bool]] = deque()
        self._gone = self._busy = self._stopping = self._is_async = False
        self._current: tuple[int, Cancellation] | None = None
        self._cancelled = 0         # the job that was cancelled last, perhaps before its work began

    def start(self) -> None:
        """Report ready() when the app's start functions have returned."""
        self._tasks.begin().add_done_callback(self._started)

    def give(self, jobs: Sequence[Handed], until: float, timed: Set[int]) -> None:
        """Process these jobs one after another."""
        self._jobs += [(job, until, job.id in timed) for job in jobs]
        self._go_on()

    def take_back(self) -> set[int]:
        """Drop the jobs that have not been started; returns their ids."""
        ids = {job.id for job, _, _ in self._jobs}
        self._jobs.clear()
        return ids

    def cancel(self, job: int) -> bool:
        """Cancel an async function; in any other the next call of the library raises JobCancelled."""
        self._cancelled = job       # before it is looked at what is current, which changes meanwhile
        if self._current and self._current[0] == job:
            self._current[1].wanted = True
            if self._is_async and self._work:
                self._work.cancel()
        return False

    def stop(self) -> None:
        """End when there is no job."""
        self._stopping = True
        if not self._busy:
            self._end("stopped")

    def kill(self) -> None:
        if self._work:
            self._work.cancel()
        self._end("cancelled")

    def _end(self, why: str) -> None:
        if not self._gone:
            self._gone = True
            self._loop.call_soon(self._parent.gone, self.number, why)

    def _started(self, begun: concurrent.futures.Future[None]) -> None:
        error = begun.exception()
        if error:
            self._tell(lambda: self._end(f"{type(error).__name__}: {error}"))
        else:
            self._tell(lambda: self._parent.ready(self.number))

    async def _run(self, job: Handed, until: float, timed: bool) -> None:
        app = self._tasks.app

        async def hold(given: Handed, work: Work) -> Any:
            held: Any
            if inspect.iscoroutinefunction(work.function):
                held = await async_job(app, given)
            else:
                held = Job(app.client._router, given)
            held._stopwatch = stopwatch() if timed else None
            return held

        async def call(function: Callable[[], Any], is_async: bool) -> Any:
            self._is_async = is_async
            cancellation.check()        # from here on cancel() knows how to interrupt it
            value = function() if is_async else await in_thread(function)
            return await limited(value, self._limit) if inspect.isawaitable(value) else value

        cancellation = Cancellation()
        self._current = job.id, cancellation
        if job.id == self._cancelled:
            cancellation.wanted = True
        outcome = await arun(app, job, hold, call, cancellation) if monotonic() < until else None
        self._current = None
        self._tell(lambda: self._ended(job, outcome))

    def _go_on(self) -> None:
        if self._jobs and not self._busy:
            self._busy = True
            self._work = asyncio.run_coroutine_threadsafe(self._run(*self._jobs.popleft()), self._tasks.loop)

    def _ended(self, job: Handed, outcome: Outcome | None) -> None:
        self._busy = False
        self._go_on()
        self._parent.ended(self.number, [Result(job.id, outcome, Usage())])
        if self._stopping and not self._busy:
            self._end("stopped")

    def _tell(self, news: Callable[[], None]) -> None:
        def tell() -> None:
            if not self._gone:
                news()

        with suppress(RuntimeError):        # the pool has ended meanwhile
            self._loop.call_soon_threadsafe(tell)
