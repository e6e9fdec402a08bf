"""Long lists: made in pieces between the requests of others, and in turn among users and their addresses."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from sockpq import QueueTotals
from sockpq_http.exchange.lists import LISTS_MAX, PIECE_LINES, Lists
from sockpq_http.routes.queues import QueueView

LINES = 20 * PIECE_LINES + 7
FOUND = [QueueTotals(f"q{number:05}", number, 0, 0, 0, 0) for number in range(LINES)]


def run(test: Callable[[Lists], Coroutine[Any, Any, None]]) -> None:
    """Run a test with the lists of one program."""
    async def running() -> None:
        await test(Lists())
    asyncio.run(running())


def brought(found: list[QueueTotals], gate: asyncio.Event | None = None) -> Callable[[], Awaitable[list[QueueTotals]]]:
    """Return a call that brings these, when the gate is open."""
    async def call() -> list[QueueTotals]:
        if gate is not None:
            await gate.wait()
        return list(found)
    return call


def view(one: QueueTotals) -> QueueView:
    """Return the view of a queue, which has all of its numbers."""
    return QueueView(name=one.name, ready=one.ready, delayed=0, running=0, dead=0, buried=0)


async def names(lists: Lists, user: str, address: str, call: Callable[[], Awaitable[list[QueueTotals]]]) -> list[str]:
    """Return the names in a list, in its order."""
    answer = await lists.answer(user, address, "queues", call, view, key=lambda one: one.name)
    return [one["name"] for one in json.loads(bytes(answer.body))["queues"]]


def test_a_list_has_everything_in_order() -> None:
    async def test(lists: Lists) -> None:
        for found in (FOUND, FOUND[::-1], FOUND[PIECE_LINES:] + FOUND[:PIECE_LINES], FOUND[:1], []):
            assert await names(lists, "u", "a", brought(found)) == sorted(one.name for one in found)
    run(test)


def test_others_get_on_while_it_is_made() -> None:
    async def test(lists: Lists) -> None:
        made = most = 0

        def counted(one: QueueTotals) -> QueueView:
            nonlocal made
            made += 1
            return view(one)

        async def watch() -> None:
            nonlocal most, made
            while True:
                most, made = max(most, made), 0
                await asyncio.sleep(0)

        watching = asyncio.create_task(watch())
        await lists.answer("u", "a", "queues", brought(FOUND), counted, key=lambda one: one.name)
        watching.cancel()
        assert 0 < most <= PIECE_LINES
    run(test)


def test_who_asks_for_many_keeps_nobody_waiting() -> None:
    async def test(lists: Lists) -> None:
        gate = asyncio.Event()
        greedy = [asyncio.create_task(names(lists, "u", "a", brought(FOUND, gate))) for _ in range(10)]
        await asyncio.sleep(0)
        others = [("v", "a"), ("u", "b")]       # another user, and the same one at another address
        assert len(others) > LISTS_MAX - 1
        tasks = [asyncio.create_task(names(lists, *who, brought(FOUND[:3]))) for who in others]
        for task in tasks:
            assert await task == [one.name for one in FOUND[:3]]
        assert not any(task.done() for task in greedy)
        gate.set()
        await asyncio.gather(*greedy)
        assert len(lists._lines) == 0           # nothing is kept of those who have gone
    run(test)
