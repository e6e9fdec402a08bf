"""A limit of time for asyncio that holds in a task which was cancelled, and is putting back what it had taken."""

from __future__ import annotations

import asyncio
from types import TracebackType


class TimeLimit:
    """asyncio.timeout(), whose end is a TimeoutError also there.

    Older releases of Python (3.11.2 is one) take an earlier cancellation of the task for its own: CancelledError.
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
