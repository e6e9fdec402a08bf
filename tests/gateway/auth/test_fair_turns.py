"""Hosts take turns."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from sockpqd.gateway.auth.fair_turns import FairTurns


class Scene:
    """Work of some hosts, which ends when the test says so."""

    def __init__(self, limit: int) -> None:
        self.turns = FairTurns(limit)
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    async def ask(self, *names: str) -> None:
        """Ask for a turn; the host is the first letter of the name."""
        for name in names:
            self._ends[name] = asyncio.Event()
            self._tasks[name] = asyncio.ensure_future(self._work(name))
            await asyncio.sleep(0)

    async def _work(self, name: str) -> None:
        async with self.turns.turn(name[0]):
            self.begun.append(name)
            await self._ends[name].wait()

    async def end(self, *names: str) -> None:
        for name in names:
            self._ends[name].set()
            assert name in self.begun
            await asyncio.wait([self._tasks[name]])
            await asyncio.sleep(0)

    def leave(self, *names: str) -> None:
        for name in names:
            self._tasks[name].cancel()

    async def finish(self) -> None:
        """Assert that all turns are free again, although clients left in the middle."""
        while waiting := [name for name, task in self._tasks.items() if not task.done()]:
            await self.end(next((name for name in waiting if name in self.begun), "nobody"))
        before = len(self.begun)
        await self.ask("z1", "z2")
        assert self.begun[before:] == ["z1", "z2"]
        await self.end("z1", "z2")


Run = Callable[[Callable[[Scene], Coroutine[Any, Any, None]]], None]


@pytest.fixture
def run() -> Run:
    def run(test: Callable[[Scene], Coroutine[Any, Any, None]]) -> None:
        async def main() -> None:
            scene = Scene(2)
            await test(scene)
            await scene.finish()
        asyncio.run(main())
    return run


def test_few_work_at_a_time_and_hosts_in_turn(run: Run) -> None:
    async def test(scene: Scene) -> None:
        await scene.ask("a1", "a2", "a3", "a4", "a5", "b1", "b2", "c1")
        assert scene.begun == ["a1", "a2"]
        await scene.end("a1", "a2", "a3", "b1", "c1")
        assert scene.begun[2:] == ["a3", "b1", "c1", "a4", "b2"]
    run(test)


def test_who_leaves_while_he_waits_costs_no_turn(run: Run) -> None:
    async def test(scene: Scene) -> None:
        await scene.ask("a1", "a2", "a3", "b1", "b2", "c1")
        scene.leave("a3", "b1")
        await scene.end("a1")
        assert scene.begun == ["a1", "a2", "b2"]
    run(test)


def test_who_leaves_at_his_turn_passes_it_on(run: Run) -> None:
    async def test(scene: Scene) -> None:
        await scene.ask("a1", "a2", "b1", "c1", "d1")
        scene.leave("a1")               # in the middle of his turn, and in the same round of the loop as the next two
        await asyncio.sleep(0)
        scene.leave("b1", "c1")
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert scene.begun == ["a1", "a2", "d1"]
    run(test)
