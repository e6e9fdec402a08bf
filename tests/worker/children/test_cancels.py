"""A job that is cancelled before its child has begun it is not begun, in each kind of child."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from sockpq.model import Handed
from sockpq.worker import App
from sockpq.worker.children.child import Child, Result
from sockpq.worker.children.spawning import spawner
from sockpq.worker.pool.settings import KINDS, Kind, PoolSettings

WAIT_S = 60.0


class Pool:
    """The messages of one child."""

    def __init__(self) -> None:
        self.is_ready = False
        self.why: str | None = None
        self.ends: list[tuple[int, str | None]] = []

    def ready(self, child: int) -> None:
        self.is_ready = True

    def ended(self, child: int, results: Sequence[Result]) -> None:
        self.ends += [(one.job, one.outcome and one.outcome.kind) for one in results]

    def gone(self, child: int, why: str) -> None:
        self.why = why

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.005)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    """A file with a line for each function that was called."""
    path = tmp_path / "record"
    path.touch()
    return path


def app_of(record: Path, *, is_async: bool) -> App:
    """Return an app whose handler waits for a file if the body says so."""
    app, go = App(), record.with_name("go")

    def note(held: Any) -> None:
        with record.open("a") as file:
            file.write(f"{held.id}\n")

    def waits(held: Any) -> bool:
        return held.data == b"wait" and not go.exists()

    if is_async:
        @app.handler("q")
        async def work_async(held: Any) -> None:
            note(held)
            while waits(held):
                await asyncio.sleep(0.005)
    else:
        @app.handler("q")
        def work(held: Any) -> None:
            note(held)
            while waits(held):
                time.sleep(0.005)
    return app


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_a_job_that_is_cancelled_before_its_function_is_called_is_not_begun(
    record: Path, kind: Kind, *, is_async: bool,
) -> None:
    settings = PoolSettings(kind=kind)

    async def main() -> None:
        pool, spawn = Pool(), spawner(app_of(record, is_async=is_async), settings)
        child: Child = spawn.spawn(1, pool, settings)
        child.start()
        try:
            await pool.until(lambda: pool.is_ready)
            jobs = [Handed(number, "q", 0, b"wait" if number == 1 else b"", None) for number in (1, 2, 3)]
            child.give(jobs, time.monotonic() + WAIT_S, set())
            await pool.until(record.read_text)
            child.cancel(2)             # as if the child had just drawn its ticket
            record.with_name("go").touch()
            await pool.until(lambda: len(pool.ends) == 3)
            assert pool.ends == [(1, "done"), (2, "cancelled"), (3, "done")]
        finally:
            record.with_name("go").touch()
            child.stop()
            await pool.until(lambda: pool.why is not None)
            spawn.close()

    asyncio.run(main())
    assert record.read_text().splitlines() == ["1", "3"]
