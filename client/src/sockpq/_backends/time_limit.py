"""A time limit for asyncio that also works in a cancelled task, which still has to put back its jobs."""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimit:
    """Like asyncio.timeout(), but raises TimeoutError in a cancelled task, too.

    Older releases of Python (such as 3.11.2) mistake an earlier cancellation of the task for the timeout's own, and
    raise CancelledError.
    """

    def __init__(self, seconds: float | None) -> None:
        """`seconds`: None for no limit."""
        self._timeout = asyncio.timeout(seconds)
        self._cancelled = 0         # how often the task was cancelled before

    async def __aenter__(self) -> None:
        self._cancelled = _cancelled()
        await self._timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._timeout.__aexit__(kind, error, trace)
        if isinstance(error, asyncio.CancelledError) and self._timeout.expired() and _cancelled() <= self._cancelled:
            raise TimeoutError from error


def _cancelled() -> int:
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()
