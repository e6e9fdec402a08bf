"""The task that this thread, or asyncio task, runs now: for once()."""

from __future__ import annotations

from contextvars import ContextVar
from typing import NamedTuple


class CurrentTask(NamedTuple):
    """A running task. `database`: the alias of the backend's outbox, None without one."""

    id: str
    database: str | None


CURRENT: ContextVar[CurrentTask | None] = ContextVar("sockpq_django_task", default=None)
