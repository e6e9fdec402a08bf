"""Creates the children of a pool, of the configured kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from sockpq.worker.app import App
from sockpq.worker.children.child import Child, Parent
from sockpq.worker.children.process_child import ProcessChild, open_files
from sockpq.worker.children.task_child import TaskChild, TaskLoop
from sockpq.worker.children.thread_child import ThreadChild
from sockpq.worker.pool.settings import PoolSettings

Spawn = Callable[[int, Parent, PoolSettings], Child]


class Spawner(NamedTuple):
    """`spawn` creates a child with this number; `close` releases resources shared by the children."""

    spawn: Spawn
    close: Callable[[], None]


def spawner(app: App, settings: PoolSettings) -> Spawner:
    """Return a spawner. Call it before the pool opens anything: child processes keep the files that are open now."""
    if settings.kind == "asyncio":
        tasks = TaskLoop(app)
        return Spawner(lambda number, parent, now: TaskChild(number, tasks, now.soft_time_limit, parent), tasks.close)
    if settings.kind == "threads":
        return Spawner(
            lambda number, parent, now: ThreadChild(number, app, now.soft_time_limit, parent), lambda: None
        )
    files = frozenset(open_files())
    return Spawner(
        lambda number, parent, now: ProcessChild(number, app, now.soft_time_limit, files, parent), lambda: None
    )
