"""Small commands without end."""

from __future__ import annotations

import asyncio
import time

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

GREEDY = 60
ALONE_S = 8.0
BEGIN_S = 3.0
COMMANDS = b"PUT greedy 0 1\r\nxGET greedy EXPIRE 1 THEN DONE\r\n" * 50


async def alone(arena: Arena) -> None:
    """Run the greedy clients without the ordinary client."""
    arena.note(f"{await _rate(arena, ALONE_S):,.0f} greedy commands a second alone")


async def pipelines(arena: Arena) -> None:
    """Pipeline commands on connections, each of which tries to be served before all others."""
    arena.note(f"{await _rate(arena, arena.seconds):,.0f} beside the ordinary client")


async def _rate(arena: Arena, seconds: float) -> float:
    """Return the commands executed per second, after the first few."""
    crowds: list[Crowd] = []
    siege = asyncio.create_task(arena.besiege(GREEDY, seconds, crowds=crowds, repeated=COMMANDS))
    await asyncio.sleep(BEGIN_S)
    before, begun = sum(crowd.good for crowd in crowds), time.monotonic()
    await siege
    return (sum(crowd.good for crowd in crowds) - before) / (time.monotonic() - begun)


ATTACKS = (
    Attack("pipelines", "60 clients pipeline small commands without end", pipelines, prepare=alone,
           bounds=Bounds(p50_ms=20, growth_mb=300)),
)
