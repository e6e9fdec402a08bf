"""The results of get() and call() of the asyncio client."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, TypeVar

from sockpq._async.job import Job

T_co = TypeVar("T_co", bound=Job | None, covariant=True)


class PendingJob(Coroutine[Any, Any, T_co], AbstractAsyncContextManager[T_co]):
    """A job that is being fetched: `job = await client.get(..)`, or `async with client.get(..) as job:`."""

    __slots__ = ("_coroutine", "_job")

    def __init__(self, coroutine: Coroutine[Any, Any, T_co]) -> None:
        self._coroutine = coroutine
        self._job: Job | None = None

    def __await__(self) -> Generator[Any, Any, T_co]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
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
