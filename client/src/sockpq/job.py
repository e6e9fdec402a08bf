"""A job in the hands of the caller."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any, Unpack

from sockpq._backends.sync import run
from sockpq._protocol.arguments import Then
from sockpq.errors import JobNotFound, SockpqError
from sockpq.model import Finished, Handed
from sockpq.options import ChangeOptions, LaterOptions, MoveOptions

if TYPE_CHECKING:
    from sockpq.calls import Calls


class TakenJob:
    """What the jobs of both clients have in common.

    `id` is its number for this hand-out only; `item` is the group it belongs to, or None. `meta` is there when get()
    was asked for it. `lost`: consume(heartbeat=True) has learnt that its lease has ended, so that another worker may
    have it.
    """

    __slots__ = ("_calls", "_ended", "data", "id", "item", "lost", "meta", "priority", "queue")

    def __init__(self, calls: Calls[Any], handed: Handed) -> None:
        self._calls = calls
        self._ended = False
        self.lost = False
        self.id, self.queue, self.priority, self.data, self.item, self.meta = handed

    async def _done(self, timeout: float | None = None, last: bool = False) -> Finished:
        self._ended = True
        return await self._calls.done(self.id, last=last, timeout=timeout)

    async def _later(self, timeout: float | None = None, **options: Unpack[LaterOptions]) -> None:
        self._ended = True
        await self._calls.later(self.id, timeout=timeout, **options)

    async def _move(self, queue: str, timeout: float | None, **options: Unpack[MoveOptions]) -> Finished:
        self._ended = True
        return await self._calls.move(self.id, queue, timeout=timeout, **options)

    async def _bury(self, reason: str | None, timeout: float | None) -> Finished:
        self._ended = True
        return await self._calls.bury(self.id, reason, timeout=timeout)

    async def _touch(self, expire: float | None, then: Then | None, timeout: float | None) -> int | None:
        try:
            return await self._calls.touch(self.id, expire, then, timeout=timeout)
        except JobNotFound:
            self.lost = True
            raise

    async def _change(self, timeout: float | None, **options: Unpack[ChangeOptions]) -> None:
        await self._calls.change(self.id, timeout=timeout, **options)
        data, priority, item = options.get("data"), options.get("priority"), options.get("item")
        self.data = self.data if data is None else bytes(data)
        self.priority = self.priority if priority is None else priority
        self.item = None if options.get("no_item") else item or self.item

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
    """A running job: this client has it until done(), later(), move(), bury() or the end of its lease.

    `id` is its number for this hand-out only; `item` is the group it belongs to, or None; `meta` tells more when
    get(meta=True) asked for it. As a context manager it says DONE at the end of the block, and LATER when the block
    raises.
    """

    __slots__ = ()

    def done(self, *, last: bool = False, timeout: float | None = None) -> Finished:
        """The job is finished: remove it. See Client.done."""
        return run(self._done(timeout, last))

    def later(self, *, timeout: float | None = None, **options: Unpack[LaterOptions]) -> None:
        """Put the job back at the end of its queue, or as `options` say. See Client.later."""
        run(self._later(timeout, **options))

    def touch(
        self, expire: float | None = None, then: Then | None = None, *, timeout: float | None = None
    ) -> int | None:
        """Let its lease begin anew. See Client.touch."""
        return run(self._touch(expire, then, timeout))

    def change(self, *, timeout: float | None = None, **options: Unpack[ChangeOptions]) -> None:
        """Change it while it runs, e.g. its data, which whoever gets it next then sees. See Client.change."""
        run(self._change(timeout, **options))

    def move(self, queue: str, *, timeout: float | None = None, **options: Unpack[MoveOptions]) -> Finished:
        """It is finished here: put it into `queue`, at once. See Client.move."""
        return run(self._move(queue, timeout, **options))

    def bury(self, reason: str | None = None, *, timeout: float | None = None) -> Finished:
        """Give it up: it goes to the dead queue. See Client.bury."""
        return run(self._bury(reason, timeout))

    def __enter__(self) -> Job:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        run(self._leave(error))
