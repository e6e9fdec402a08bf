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


LOOKED_AT = b"looked_at"
LOOKS = b"CLUSTER STATUS\r\nQUEUE CONFIG %b\r\nQUEUE STAT %b\r\nCONFIG\r\n" % (LOOKED_AT, LOOKED_AT) * 50


async def make_queue(arena: Arena) -> None:
    """Make the queue that is looked at."""
    await arena.insist([b"PUT %b 0 1\r\nx" % LOOKED_AT])


async def looks(arena: Arena) -> None:
    """Pipeline commands that only ask, and are answered by many figures."""
    crowds: list[Crowd] = []
    await arena.besiege(GREEDY, crowds=crowds, repeated=LOOKS)
    arena.note(f"{sum(crowd.good for crowd in crowds) / arena.seconds:,.0f} answers a second")


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
    Attack("looks", "60 clients pipeline CLUSTER STATUS, QUEUE CONFIG and the like without end", looks,
           prepare=make_queue, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
)
