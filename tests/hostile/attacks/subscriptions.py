"""Subscribers, many of them and with many names each, and messages to all of them as fast as the leader accepts them.
"""

from __future__ import annotations

import asyncio

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.hostile.ordinary import QUEUE

HEARERS, NAMES = 4500, 200
TALKERS, LISTENERS = 8, 300
FICKLE = 60
MESSAGE = b"NOTIFY loud 20\r\n" + b"x" * 20


def _names(number: int, count: int) -> str:
    """Return prefixes that no other subscriber has, and that of the ordinary client's queue."""
    return "|".join([*(f"n{number}_{one}*" for one in range(count - 1)), f"{QUEUE[:1]}*"])


async def hearers(arena: Arena) -> None:
    """Subscribe 4,500 times at the leader to events of the ordinary client's jobs, each by 200 prefixes."""
    crowds: list[Crowd] = []
    await arena.besiege(
        HEARERS, opening=lambda number: f"SUBSCRIBE PUT|TAKE|DONE {_names(number, NAMES)}\r\n".encode(), crowds=crowds)
    heard = sum(crowd.bytes for crowd in crowds)
    arena.note(f"{heard / 1e6:.0f} MB of events told")
    arena.expect(heard > 0, "nobody heard anything")


async def messages(arena: Arena) -> None:
    """Subscribe 300 times, and send messages without end from other clients."""
    server = await asyncio.to_thread(arena.server)
    async with Crowd(server, LISTENERS, opening=b"SUBSCRIBE MSG loud\r\n") as listeners:
        crowds: list[Crowd] = []
        await arena.besiege(TALKERS, repeated=MESSAGE * 20, crowds=crowds)
        arena.note(f"{sum(crowd.good for crowd in crowds):,} messages, {listeners.bytes / 1e6:.0f} MB heard")


async def fickle(arena: Arena) -> None:
    """Make and end subscriptions of 1,000 names without end, some from the past."""
    once = f"SUBSCRIBE PUT|TAKE|DONE|MSG {_names(0, 1000)}\r\nUNSUBSCRIBE\r\n".encode()
    await arena.besiege(FICKLE, repeated=once)


ATTACKS = (
    Attack("hearers", "4,500 subscribers of 200 prefixes each, at the leader", hearers, seconds=15,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=1500)),
    Attack("messages", "NOTIFY without end, to 300 subscribers", messages, bounds=Bounds(p50_ms=20, gap_s=1)),
    Attack("fickle-hearers", "60 clients subscribe to 1,000 names and end that, without end", fickle,
           bounds=Bounds(p50_ms=20, gap_s=1)),
)
