"""A job in the hands of the caller."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from sockpq.errors import SockpqError
from sockpq.model import Finished, Handed
from sockpq.threads import run

if TYPE_CHECKING:
    from sockpq.calls import Calls


class TakenJob:
    """What the jobs of both clients have in common.

    `id` is its number for this hand-out only; `item` is the group it belongs to, or None.
    """

    __slots__ = ("_calls", "_ended", "data", "id", "item", "priority", "queue")

    def __init__(self, calls: Calls[Any], handed: Handed) -> None:
        self._calls = calls
        self._ended = False
        self.id, self.queue, self.priority, self.data, self.item = handed

    async def _done(self, timeout: float | None = None) -> Finished:
        self._ended = True
        return await self._calls.done(self.id, timeout=timeout)

    async def _later(self, timeout: float | None = None) -> None:
        self._ended = True
        await self._calls.later(self.id, timeout=timeout)

    async def _leave(self, error: BaseException | None) -> None:
        """The end of a `with` block, with the error that ended it."""
        if self._ended:
            return
        if error is None:
            await self._done()
            return
        try:
            await self._later()
        except SockpqError as failure:      # the block's own error is the one to see
            error.add_note(f"and the job could not be put back: {failure}")

    def __repr__(self) -> str:
        return f"<Job {self.id} of {self.queue!r}, {len(self.data)} bytes>"


class Job(TakenJob):
    """A running job: this client has it until done(), later() or the end of its lease.

    `id` is its number for this hand-out only; `item` is the group it belongs to, or None. As a context manager it says
    DONE at the end of the block, and LATER when the block raises.
    """

    __slots__ = ()

    def done(self, *, timeout: float | None = None) -> Finished:
        """The job is finished: remove it. See Client.done."""
        return run(self._done(timeout))

    def later(self, *, timeout: float | None = None) -> None:
        """Put the job back at the end of its queue. See Client.later."""
        run(self._later(timeout))

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._leave(error))
