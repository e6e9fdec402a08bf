"""Keeps a session alive: a task sends PING every third of the session's TTL."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from sockpq._streaming.bound_sessions import BoundSessions


class KeepAlive:
    """Keeps one session alive while its jobs are in progress."""

    def __init__(self, session: BoundSessions) -> None:
        self._session = session
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the task, unless it is running."""
        if self._task is None:
            self._task = asyncio.create_task(self._beat(), name="sockpq keepalive")

    async def stop(self) -> None:
        """Stop the task that sends PING."""
        if self._task:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(self._session.period)
            await self._session.beat()
