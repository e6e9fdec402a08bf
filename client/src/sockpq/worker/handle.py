"""The handle of a task's job: its state, and the result of its function."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Protocol

from sockpq._protocol.arguments import Codec
from sockpq.errors import BadArguments, JobNotFound
from sockpq.model import Awaited, JobStat, Number, PeekedJob, Stored
from sockpq.worker.errors import TaskFailed

if TYPE_CHECKING:
    from sockpq._async.client import Client as AsyncClient
    from sockpq._sync.client import Client

FRAME = re.compile(r'^ *(\| )?  File "', re.MULTILINE)
RAISED = re.compile(r"^(?:[\w.]*\.)?(\w+)(?:: (.*))?$", re.DOTALL)


class Asked(Protocol):
    """The part of an App that handles need."""

    codec: Codec

    @property
    def client(self) -> Client:
        """The blocking client of the app."""
        ...

    @property
    def async_client(self) -> AsyncClient:
        """The client of the running event loop."""
        ...


class Handle(Stored):
    """The job that put() has queued.

    Everything except `number` needs a job with a number: a task with `retain` or `result`.
    """

    _app: Asked
    _queue: str
    _known: Awaited | None = None       # of a task that ran in this process, without a server

    def look(self) -> PeekedJob | None:
        """Return the current job: its state, attempts, progress, reason.

        None when it is not, or no longer, known.
        """
        if self._known:
            return None
        client, number = self._app.client, _number_of(self)
        job = client.ended(number)
        if job is None or not _may_be_dead(job, self._queue):
            return job
        return _with_history(job, client.job_stat(number))

    def state(self) -> str | None:
        """Return "ready", "delayed" or "running"; "done", "cancelled" or "expired"; "dead" or "buried".

        None if the job is unknown, or was forgotten: its task does not retain ended jobs that long.
        """
        if self._known:
            return self._known.state
        job = self.look()
        return job and job.state

    def result(self, timeout: float | None = None) -> Any:
        """Wait until the job has ended, for `timeout` seconds at most, and return what its function returned.

        Raises TaskFailed when it was given up, cancelled or has expired; TimeoutError; JobNotFound when it is not, or
        no longer, known.
        """
        ended = self._known or self._app.client.await_job(_number_of(self), wait=timeout)
        return _value_of(ended, self._app.codec)

    def cancel(self) -> bool:
        """Remove the job; a running one is interrupted. Returns whether there was a job to cancel."""
        try:
            if not self._known:
                self._app.client.delete(Number(_number_of(self)))
        except JobNotFound:
            return False
        return not self._known


class AsyncHandle(Stored):
    """The job that aput() has queued: Handle for asyncio."""

    _app: Asked
    _queue: str
    _known: Awaited | None = None

    async def look(self) -> PeekedJob | None:
        """Return the current job. See Handle.look."""
        if self._known:
            return None
        client, number = self._app.async_client, _number_of(self)
        job = await client.ended(number)
        if job is None or not _may_be_dead(job, self._queue):
            return job
        return _with_history(job, await client.job_stat(number))

    async def state(self) -> str | None:
        """Return the state of the job, in a word. See Handle.state."""
        if self._known:
            return self._known.state
        job = await self.look()
        return job and job.state

    async def result(self, timeout: float | None = None) -> Any:
        """Wait for the end of the job, and return what its function returned. See Handle.result."""
        ended = self._known or await self._app.async_client.await_job(_number_of(self), wait=timeout)
        return _value_of(ended, self._app.codec)

    async def cancel(self) -> bool:
        """Remove the job; a running one is interrupted. See Handle.cancel."""
        try:
            if not self._known:
                await self._app.async_client.delete(Number(_number_of(self)))
        except JobNotFound:
            return False
        return not self._known


def handle(app: Asked, queue: str, stored: Stored, known: Awaited | None = None) -> Handle:
    """Return the handle of a job of this queue; `known`: its end, if that was at once."""
    made = Handle(*stored)
    made._app, made._queue, made._known = app, queue, known
    return made


def async_handle(app: Asked, queue: str, stored: Stored, known: Awaited | None = None) -> AsyncHandle:
    """Return the same for asyncio."""
    made = AsyncHandle(*stored)
    made._app, made._queue, made._known = app, queue, known
    return made


def _may_be_dead(job: PeekedJob, queue: str) -> bool:
    """Return whether the job may be dead, which only its history shows: it is ready in its dead-letter queue."""
    return job.state == "ready" and job.queue != queue


def _with_history(job: PeekedJob, history: JobStat) -> PeekedJob:
    return job if history.died is None else job._replace(state="dead")


def failure_of(state: str, text: str) -> TaskFailed:
    """Return the error of a job that has ended in this state, with the text that its worker left."""
    frames = list(FRAME.finditer(text))
    if not text.strip():
        return TaskFailed(f"Job{state.capitalize()}", f"the job is {state}")
    said = text[frames[-1].start() :].split("\n")[1:] if frames else text.split("\n")
    while said and said[0].startswith(" ") and len(said) > 1:      # the line of the source, and marks below it
        del said[0]
    raised = RAISED.match("\n".join(said).strip())
    kind, message = (raised[1], raised[2] or "") if raised else ("Error", "\n".join(said).strip())
    return TaskFailed(kind, message, text if frames else "")


def _number_of(stored: Stored) -> int:
    if stored.number is None:
        raise BadArguments(
            "the job has no number: its task needs @app.task(.., retain=<seconds>) or result=True, on servers that "
            "keep jobs that have ended"
        )
    return stored.number


def _value_of(ended: Awaited | None, codec: Codec) -> Any:
    if ended is None:
        raise TimeoutError("the job has not ended yet")
    if ended.state != "done":
        raise failure_of(ended.state, ended.data.decode(errors="replace"))
    return codec.decode(ended.data) if ended.data else None
