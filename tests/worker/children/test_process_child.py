"""A child process and its tickets: it is always known exactly which child has which job."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from time import monotonic
from typing import Any

from sockpq.model import Handed
from sockpq.worker import App
from sockpq.worker.children.child import Result
from sockpq.worker.children.process_child import ProcessChild, open_files

WAIT_S = 60.0


class Told:
    """The messages of the child, in order."""

    def __init__(self) -> None:
        self.is_ready = asyncio.Event()
        self.is_gone = asyncio.Event()
        self.results: list[Result] = []
        self.child: ProcessChild | None = None
        self.left: set[int] = set()

    def ready(self, child: int) -> None:
        self.is_ready.set()

    def ended(self, child: int, results: Sequence[Result]) -> None:
        self.results += results

    def gone(self, child: int, why: str) -> None:
        assert self.child
        self.left = self.child.take_back()
        self.is_gone.set()

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not condition():
                await asyncio.sleep(0.005)


def job(number: int, body: bytes = b"") -> Handed:
    return Handed(number, "q", 0, body, None)


def with_child(folder: Path, test: Callable[[ProcessChild, Told], Any]) -> list[str]:
    """Run the test; returns the ids of the jobs that were begun, in order. A body b"wait" waits for the file `go`."""
    begun, go = folder / "begun", folder / "go"
    begun.touch()
    app = App()

    @app.handler("q")
    def work(held: Any) -> None:
        with begun.open("a") as file:
            file.write(f"{held.id}\n")
        while held.data == b"wait" and not go.exists():
            signal.sigtimedwait([], 0.005)

    async def main() -> None:
        told = Told()
        told.child = child = ProcessChild(1, app, None, open_files(), told)
        child.start()
        try:
            await told.until(told.is_ready.is_set)
            await test(child, told)
        finally:
            go.touch()
            child.kill()
            await told.until(told.is_gone.is_set)

    asyncio.run(main())
    return begun.read_text().split()


def test_what_is_taken_back_is_not_begun_and_what_is_begun_is_not_taken_back(tmp_path: Path) -> None:
    async def test(child: ProcessChild, told: Told) -> None:
        child.give([job(1, b"wait"), job(2), job(3)], monotonic() + 60, set())
        child.give([job(4)], monotonic() + 60, set())
        await told.until(lambda: (tmp_path / "begun").read_text() == "1\n")
        assert child.take_back() == {2, 3, 4}
        assert child.take_back() == set()
        child.give([job(5), job(3)], monotonic() + 60, set())      # one of them comes again
        (tmp_path / "go").touch()
        await told.until(lambda: len(told.results) == 3)
        assert [(one.job, one.outcome and one.outcome.kind) for one in told.results] == [
            (1, "done"), (5, "done"), (3, "done"),
        ]
    assert with_child(tmp_path, test) == ["1", "5", "3"]


def test_no_job_is_begun_when_that_is_too_late(tmp_path: Path) -> None:
    async def test(child: ProcessChild, told: Told) -> None:
        child.give([job(1), job(2)], monotonic() - 1, set())
        child.give([job(3)], monotonic() + 60, set())
        await told.until(lambda: len(told.results) == 3)
        assert [one.outcome is None for one in told.results] == [True, True, False]
    assert with_child(tmp_path, test) == ["3"]


def test_what_a_killed_child_has_not_begun_is_known(tmp_path: Path) -> None:
    async def test(child: ProcessChild, told: Told) -> None:
        child.give([job(1), job(2, b"wait"), job(3), job(4)], monotonic() + 60, set())
        await told.until(lambda: (tmp_path / "begun").read_text() == "1\n2\n")
        os.kill(child.pid, signal.SIGKILL)
        await told.until(told.is_gone.is_set)
        assert [one.job for one in told.results] == [1]     # it had said that
        assert told.left == {3, 4}
    assert with_child(tmp_path, test) == ["1", "2"]


def test_large_jobs_and_many_of_them(tmp_path: Path) -> None:
    async def test(child: ProcessChild, told: Told) -> None:
        child.give([job(number, b"x" * 300_000) for number in range(1, 11)], monotonic() + 60, set())
        child.give([job(number) for number in range(11, 1011)], monotonic() + 60, set())
        await told.until(lambda: len(told.results) == 1010)
    assert with_child(tmp_path, test) == [str(number) for number in range(1, 1011)]
