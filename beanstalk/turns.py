"""The interface of a host that schedules commands and long answers, so that no client waits long for others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol


class Turns(Protocol):
    """The scheduler that all connections share, perhaps with connections of other servers."""

    budget: int             # commands that may still be executed in this turn

    def call_in_turn(self, do: Callable[[], None]) -> None:
        """Call `do` in a later turn, after all calls that are waiting already."""

    def do_piece(self, piece: Callable[[], bool]) -> None:
        """Call `piece` in its turn: it does the next piece of a long answer and returns whether there was one."""


class UnboundedTurns:
    """Turns of an event loop that has nothing else to do: each iteration is a turn without a limit."""

    budget = property(lambda _: 1, lambda _, budget: None)

    def call_in_turn(self, do: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(do)

    def do_piece(self, piece: Callable[[], bool]) -> None:
        asyncio.get_running_loop().call_soon(piece)
