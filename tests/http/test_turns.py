"""Turns of one user's requests: addresses share places, and an abandoned request keeps nobody waiting."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest
from sockpq_http.access.peer import Peer
from sockpq_http.access.turns import HungUp, Turns
from sockpq_http.problems.problem import Problem

PATIENT_S = 3600.0


class Requests:
    """Requests that are executed until they are ended; `begun` has them in their order."""

    def __init__(self, turns: Turns) -> None:
        self.turns = turns
        self.begun: list[str] = []
        self._ends: dict[str, asyncio.Event] = {}
        self.tasks: dict[str, asyncio.Task[None]] = {}

    async def come(self, name: str, peer: Peer | None = None) -> Peer:
        """Let a request come from the address with which its name begins."""
        peer = peer or Peer(name[0])
        self._ends[name] = asyncio.Event()
        self.tasks[name] = asyncio.create_task(self._execute(name, peer))
        await settled()
        return peer

    async def end(self, name: str) -> None:
        self._ends[name].set()
        await settled()

    async def _execute(self, name: str, peer: Peer) -> None:
        async with self.turns.turn(peer):
            self.begun.append(name)
            await self._ends[name].wait()


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(test: Callable[[Requests], Coroutine[Any, Any, None]], **limits: float) -> None:
    async def running() -> None:
        requests = Requests(Turns(**{       # type: ignore[arg-type]
            "places": 2, "waiting_max": 10, "patience_s": PATIENT_S, "leaving_max": 2, **limits}))
        await test(requests)
        for task in requests.tasks.values():
            task.cancel()
        await asyncio.gather(*requests.tasks.values(), return_exceptions=True)
        assert requests.turns.waiting == 0
        assert requests.turns._free == limits.get("places", 2)
        assert not requests.turns._taken

    asyncio.run(running())


def test_a_free_place_goes_to_the_address_that_has_fewest() -> None:
    async def test(requests: Requests) -> None:
        for name in ("a1", "a2", "a3", "a4", "a5", "b1", "c1"):
            await requests.come(name)
        await requests.end("a1")
        await requests.end("a2")
        await requests.end("b1")
        assert requests.begun == ["a1", "a2", "b1", "a3", "c1"]

    run(test)


def test_when_too_many_wait_the_address_that_has_most_gives_up() -> None:
    async def test(requests: Requests) -> None:
        for name in ("a1", "a2", "a3", "a4", "a5", "b1"):
            await requests.come(name)
        assert isinstance(requests.tasks["a5"].exception(), Problem)
        await requests.come("a6")
        assert isinstance(requests.tasks["a6"].exception(), Problem)
        assert requests.turns.waiting == 3

    run(test, waiting_max=3)


def test_a_client_that_hangs_up_while_it_waits_is_forgotten() -> None:
    async def test(requests: Requests) -> None:
        await requests.come("a1")
        await requests.come("a2")
        gone = await requests.come("a3")
        await requests.come("b1")
        gone.leave()
        await settled()
        assert isinstance(requests.tasks["a3"].exception(), HungUp)
        await requests.end("a1")
        await requests.end("a2")
        assert requests.begun == ["a1", "a2", "b1"]

    run(test)


def test_a_client_that_hangs_up_gives_its_place_back_at_once() -> None:
    async def test(requests: Requests) -> None:
        first = await requests.come("a1")
        await requests.come("a2")
        await requests.come("a3")
        await requests.come("b1")
        first.leave()
        await settled()
        assert requests.begun == ["a1", "a2", "b1"]     # and it still counts as one of its address
        await requests.end("a1")
        assert len(requests.begun) == 3
        await requests.end("b1")
        assert requests.begun[3:] == ["a3"]

    run(test)


def test_what_is_left_behind_is_bounded() -> None:
    async def test(requests: Requests) -> None:
        peers = [await requests.come(f"a{number}") for number in range(4)]
        for peer in peers[:2]:
            peer.leave()
        await settled()
        assert requests.begun == ["a0", "a1", "a2"]     # the second one keeps its place until it ends
        await requests.end("a1")
        assert requests.begun[3:] == ["a3"]

    run(test, leaving_max=1)


def test_nobody_waits_for_ever() -> None:
    async def test(requests: Requests) -> None:
        await requests.come("a1")
        await requests.come("a2")
        with pytest.raises(Problem) as refused:
            async with requests.turns.turn(Peer("b")):
                pass
        assert (refused.value.status, refused.value.kind) == (503, "busy")

    run(test, patience_s=0.05)


def test_a_place_that_comes_for_one_who_leaves_just_then_goes_to_the_next() -> None:
    async def test(requests: Requests) -> None:
        await requests.come("a1")
        await requests.come("a2")
        await requests.come("b1")
        await requests.come("c1")
        requests._ends["a1"].set()
        await asyncio.sleep(0)              # the place is given to b1, which has not noticed
        requests.tasks["b1"].cancel()
        await settled()
        assert requests.begun == ["a1", "a2", "c1"]

    run(test)
