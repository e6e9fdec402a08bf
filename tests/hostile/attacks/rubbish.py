"""Meaningless bytes, on every port."""

from __future__ import annotations

import asyncio
import random

from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd

SEED = 18
AGAIN_S = 0.1
MOST_BYTES = 4 * MIB
NUMBERS = (b"-1", b"00", b"1e9", b"18446744073709551616", b"9" * 400, b"0x10", b"", b"\xff")
HALVES = (b"PUT q 0 100\r\nabc", b"GET", b"PUTS 10000\r\nq 0 1\r\n", b"CLONE 1000000\r\n", b"REQ 1 ",
          b"BEGIN\r\nPUT q 0")


def rubbish(chance: random.Random) -> bytes:
    """Return a few kilobytes of it: random bytes, huge lines, half lines, lengths that are none."""
    return b"".join(chance.choice((
        lambda: chance.randbytes(chance.randrange(1, 2000)),
        lambda: bytes(chance.choices(b"AZaz09 |:-", k=chance.randrange(70_000))) + b"\r\n",
        lambda: b"PUT q %b %b\r\n" % (chance.choice(NUMBERS), chance.choice(NUMBERS)),
        lambda: b"%b %b %b\r\n" % (chance.choice((b"DONE", b"GET q COUNT", b"PUTS", b"TOUCH")), chance.choice(NUMBERS),
                                   chance.randbytes(8).hex().encode()),
        lambda: chance.choice(HALVES),
        lambda: chance.randrange(2**32).to_bytes(4, "big") + chance.randbytes(50),     # a frame of a peer, perhaps
        lambda: b"GET /%b HTTP/1.1\r\nContent-Length: %b\r\n" % (b"a" * chance.randrange(9000), chance.choice(NUMBERS)),
    ))() for _ in range(8))


async def send_rubbish(arena: Arena) -> None:
    """Send rubbish; connections that are cut come back with other rubbish."""
    chance = random.Random(SEED)
    cluster = arena.cluster
    crowds = [Crowd(address, count, opening=lambda number: rubbish(chance), repeated=rubbish(chance), again_s=AGAIN_S,
                    most_bytes=MOST_BYTES)
              for name in cluster.names
              for address, count in ((cluster.direct(name), 20), (cluster.peer(name), 5), (cluster.http(name), 5))]
    await asyncio.gather(*(crowd.__aenter__() for crowd in crowds))
    try:
        await asyncio.sleep(arena.seconds)
    finally:
        await asyncio.gather(*(crowd.__aexit__(None, None, None) for crowd in crowds))
    arena.note(f"{sum(crowd.made for crowd in crowds)} connections")


ATTACKS = (
    Attack("rubbish", "random bytes, huge and half lines, wrong lengths on the ports of clients, peers and HTTP",
           send_rubbish, bounds=Bounds(growth_mb=300)),
)
