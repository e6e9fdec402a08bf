"""Handshakes of TLS on one port: one that fails holds up no other, and addresses share the places."""

from __future__ import annotations

import asyncio
from typing import Any

from sockpqd.cluster import Handshakes

LIMIT = 8
PATIENCE_S = 30.0


class Recorded:
    """A handshake that records its steps, and fails on demand."""

    def __init__(self, steps: list[str], name: str, error: Exception | None = None) -> None:
        self._steps, self._name, self._error = steps, name, error
        self.waits_for_us = False

    def step(self) -> None:
        self._steps.append(self._name)
        if self._error is not None:
            raise self._error

    def refuse(self, why: str) -> None:
        self._steps.append(f"{self._name} {why}")

    def abort(self) -> None:
        self._steps.append(f"{self._name} aborted")


def test_an_error_in_one_handshake_leaves_the_others_their_turns() -> None:
    async def test() -> None:
        loop = asyncio.get_running_loop()
        errors: list[dict[str, Any]] = []
        loop.set_exception_handler(lambda _, context: errors.append(context))
        handshakes, steps = Handshakes(LIMIT, PATIENCE_S, lambda address, why: None), list[str]()
        for handshake in (Recorded(steps, "a", RuntimeError("broken")), Recorded(steps, "b")):
            handshakes.due(handshake)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        handshakes.due(Recorded(steps, "c"))            # and later ones
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert steps == ["a", "b", "c"]
        assert [str(context["exception"]) for context in errors] == ["broken"]
    asyncio.run(test())


def test_when_all_places_are_taken_addresses_share_them() -> None:
    async def test() -> None:
        handshakes, steps = Handshakes(LIMIT, PATIENCE_S, lambda address, why: None), list[str]()

        def come(host: str, number: int) -> list[bool]:
            return [handshakes.begin(Recorded(steps, f"{host}{number}"), host) for _ in range(number)]

        assert come("flood", LIMIT) == [True] * LIMIT
        assert come("flood", 1) == [False]                      # it takes no place of its own
        assert come("honest", LIMIT) == [True] * (LIMIT // 2) + [False] * (LIMIT // 2)
        assert steps == [f"flood{LIMIT} aborted"] * (LIMIT // 2)
        assert come("third", 1) == [True]
        assert come("flood", 1) == [False]                      # nor one of others
        handshakes.close()
    asyncio.run(test())


def test_of_a_flood_those_that_do_not_wait_for_us_give_way_first() -> None:
    async def test() -> None:
        handshakes, steps = Handshakes(2, PATIENCE_S, lambda address, why: None), list[str]()
        busy, silent = Recorded(steps, "busy"), Recorded(steps, "silent")
        busy.waits_for_us = True
        assert handshakes.begin(busy, "flood")
        assert handshakes.begin(silent, "flood")
        assert handshakes.begin(Recorded(steps, "honest"), "honest")
        assert steps == ["silent aborted"]
        handshakes.end(silent)                                  # its connection is lost
        handshakes.end(busy)
        assert handshakes.begin(Recorded(steps, "later"), "flood")
        handshakes.close()
    asyncio.run(test())
