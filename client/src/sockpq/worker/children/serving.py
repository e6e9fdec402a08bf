"""Processes the jobs of a child one after another, in one thread with an event loop for async functions."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import signal
import sys
import threading
from contextlib import suppress
from functools import partial
from types import CodeType, FrameType
from typing import Any

from sockpq._async.job import Job as AsyncJob
from sockpq._backends.stopwatch import stopwatch
from sockpq._sync.job import Job
from sockpq.model import Handed
from sockpq.worker.app import App
from sockpq.worker.current import Cancellation
from sockpq.worker.errors import JobCancelled, SoftTimeLimit
from sockpq.worker.execution import Work, run
from sockpq.worker.outcome import Outcome

AGAIN_S = 0.01


class Serving:
    """Calls the functions of an app. `soft_time_limit`: seconds after which SoftTimeLimit is raised in a function.

    For functions that are not async this uses a signal, and so needs the main thread of a process.
    """

    def __init__(self, app: App, soft_time_limit: float | None = None) -> None:
        self._app = app
        self._limit = soft_time_limit
        self._by_signal = soft_time_limit is not None and threading.current_thread() is threading.main_thread()
        self._runner: asyncio.Runner | None = None
        self._working = False
        self._current: tuple[Handed, Cancellation] | None = None
        self._cancelled = 0             # the job that was cancelled last, perhaps before its work began
        self._task: asyncio.Task[Any] | None = None
        if self._by_signal:
            signal.signal(signal.SIGALRM, self._alarm)
            self._report_dropped, sys.unraisablehook = sys.unraisablehook, self._dropped

    def start(self) -> None:
        """Call the app's functions for the start of each child."""
        for function in self._app.child_starts:
            value = function()
            if inspect.isawaitable(value):
                self._await(value)

    def work(self, job: Handed, timed: bool = False) -> Outcome:
        """Process a job. `timed`: the pool reports its run time to the server."""
        outcome: Outcome | None = None
        cancellation = Cancellation()
        # The alarm may arrive when the work is finished and the timer is still on: then it is ignored.
        with suppress(SoftTimeLimit):
            self._arm(self._limit)
            try:
                self._current = job, cancellation
                if job.id == self._cancelled:
                    cancellation.wanted = True
                outcome = run(self._app, job, partial(self._hold, timed=timed), self._await, cancellation)
            except JobCancelled:        # it came when the work was over
                outcome = Outcome("cancelled")
            finally:
                self._current = None
                self._arm(None)
        return outcome or Outcome("later", reason="SoftTimeLimit")

    def cancel(self, job: int) -> None:
        """Interrupt this job, or do not begin it; called from another thread."""
        self._cancelled = job           # before it is looked at what is current, which changes meanwhile
        current, task = self._current, self._task
        if current and current[0].id == job:
            current[1].wanted = True
            if task:
                task.get_loop().call_soon_threadsafe(task.cancel)

    def interrupt(self, job: int) -> None:
        """Like cancel(), but called in the working thread when a signal has arrived."""
        self.cancel(job)
        if self._current and self._current[0].id == job and self._task is None:
            self._current[1].check()

    def close(self) -> None:
        """End the event loop and the clients."""
        if self._runner:
            self._runner.run(close_async(self._app))
            self._runner.close()

    def _hold(self, job: Handed, work: Work, *, timed: bool) -> Any:
        held: Any
        if inspect.iscoroutinefunction(work.function):
            held = self._await(async_job(self._app, job))
        else:
            held = Job(self._app.client._router, job)
        held._stopwatch = stopwatch() if timed else None
        return held

    def _await(self, value: Any) -> Any:
        """Run an awaitable to its end, within the time limit; uses another timer, as a signal would hit the loop."""
        if self._runner is None:
            self._runner = asyncio.Runner()
        self._arm(None)
        return self._runner.run(self._cancellable(value), context=contextvars.copy_context())

    async def _cancellable(self, value: Any) -> Any:
        self._task = asyncio.current_task()
        try:
            if self._current and self._current[1].wanted and not self._current[1].interrupted:
                if inspect.iscoroutine(value):
                    value.close()       # or Python warns that nobody has awaited it
                raise asyncio.CancelledError
            return await limited(value, self._limit)
        finally:
            self._task = None

    def _arm(self, seconds: float | None) -> None:
        if self._by_signal:
            self._working = seconds is not None
            signal.setitimer(signal.ITIMER_REAL, seconds or 0)

    def _alarm(self, number: int, frame: FrameType | None) -> None:
        if not self._working:
            return
        if _executes(frame, Serving._dropped.__code__):     # held up by the machine: it would be dropped for good
            self._arm(AGAIN_S)
            return
        self._working = False
        raise SoftTimeLimit(f"{self._limit:g} s are over")

    def _dropped(self, dropped: sys.UnraisableHookArgs) -> None:
        """Raise the limit again a little later if Python has dropped the exception because a destructor was running."""
        if isinstance(dropped.exc_value, SoftTimeLimit):
            self._arm(AGAIN_S)
        else:
            self._report_dropped(dropped)


def _executes(frame: FrameType | None, code: CodeType) -> bool:
    """Return whether the frame, or one that called it, executes this code."""
    while frame is not None and frame.f_code is not code:
        frame = frame.f_back
    return frame is not None


async def limited(value: Any, limit: float | None) -> Any:
    """Await, for at most `limit` seconds; raises SoftTimeLimit inside when they have passed."""
    if limit is None:
        return await value
    try:
        async with asyncio.timeout(limit) as timer:
            return await value
    except TimeoutError as error:
        if timer.expired():
            raise SoftTimeLimit(f"{limit:g} s are over") from error
        raise


async def async_job(app: App, job: Handed) -> AsyncJob:
    """Return the job for an async function."""
    return AsyncJob(app.async_client._router, job)


async def close_async(app: App) -> None:
    """Close the client of this event loop, if one was used."""
    await app.close_async_client()


