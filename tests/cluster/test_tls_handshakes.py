"""Handshakes of TLS on one port: one that fails holds up no other."""

from __future__ import annotations

import asyncio
from typing import Any

from sockpqd.cluster import Handshakes

LIMIT = 8
PATIENCE_S = 30.0


class Recorded:
    """A handshake that notes its steps, and fails if it is told to."""

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
