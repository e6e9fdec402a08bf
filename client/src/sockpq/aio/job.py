"""A job in the hands of a task."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar, Unpack

from sockpq._protocol.arguments import Then
from sockpq.job import TakenJob
from sockpq.model import Finished
from sockpq.options import ChangeOptions, LaterOptions, MoveOptions

T_co = TypeVar("T_co", bound="Job | None", covariant=True)


class Job(TakenJob):
    """A running job: this client has it until done(), later(), move(), bury() or the end of its lease.

    `id` is its number for this hand-out only; `item` is the group it belongs to, or None; `meta` tells more when
    get(meta=True) asked for it. As an asynchronous context manager it says DONE at the end of the block, and LATER when
    the block raises.
    """

    __slots__ = ()

    async def done(self, *, last: bool = False, timeout: float | None = None) -> Finished:
        """The job is finished: remove it. See sockpq.Client.done."""
        return await self._done(timeout, last)

    async def later(self, *, timeout: float | None = None, **options: Unpack[LaterOptions]) -> None:
        """Put the job back at the end of its queue, or as `options` say. See sockpq.Client.later."""
        await self._later(timeout, **options)

    async def touch(
        self, expire: float | None = None, then: Then | None = None, *, timeout: float | None = None
    ) -> int | None:
        """Let its lease begin anew. See sockpq.Client.touch."""
        return await self._touch(expire, then, timeout)

    async def change(self, *, timeout: float | None = None, **options: Unpack[ChangeOptions]) -> None:
        """Change it while it runs. See sockpq.Client.change."""
        await self._change(timeout, **options)

    async def move(self, queue: str, *, timeout: float | None = None, **options: Unpack[MoveOptions]) -> Finished:
        """It is finished here: put it into `queue`, at once. See sockpq.Client.move."""
        return await self._move(queue, timeout, **options)

    async def bury(self, reason: str | None = None, *, timeout: float | None = None) -> Finished:
        """Give it up: it goes to the dead queue. See sockpq.Client.bury."""
        return await self._bury(reason, timeout)

    async def __aenter__(self) -> Job:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._leave(error)


class Getting(Coroutine[Any, Any, T_co], AbstractAsyncContextManager[T_co]):
    """What get() and call() return: `job = await client.get(..)`, or `async with client.get(..) as job:`."""

    __slots__ = ("_coroutine", "_job")

    def __init__(self, coroutine: Coroutine[Any, Any, T_co]) -> None:
        self._coroutine = coroutine
        self._job: Job | None = None

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """See Coroutine."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """See Coroutine."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """See Coroutine."""
        self._coroutine.close()

    async def __aenter__(self) -> T_co:
        job = await self._coroutine
        self._job = job
        return job

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._job:
            await self._job.__aexit__(kind, error, traceback)
