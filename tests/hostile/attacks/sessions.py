"""Sessions without end, of one owner."""

from __future__ import annotations

import asyncio
from collections import Counter

from tests.hostile.arena import Arena, say
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.hostile.ordinary import Habits

ORDINARY, SHORT_LIVED = "127.0.0.2", "127.0.0.3"
CONNECTIONS = 400
OPEN = b"SESSION TTL 3600\r\n"
EACH = 300                      # 120,000 together: more than there may be
AT_ONCE = 20
RETURNING = 60
A_SECOND = 111
ANSWER_S = 5.0
SHORT_LIFE = b"SESSION TTL 3600\r\nREQ 1 PUT short 0 1\r\nx"


async def sessions(arena: Arena) -> None:
    """Open all possible sessions as one owner; programs that live for a moment leave theirs behind."""
    crowds: list[Crowd] = []
    _, answers = await asyncio.gather(
        arena.besiege(CONNECTIONS, crowds=crowds, repeated=OPEN * AT_ONCE, most_bytes=EACH * len(OPEN)),
        _short_lives(arena))
    arena.note(f"{sum(crowd.good for crowd in crowds):,} sessions for one owner, "
               f"{sum(answers.values())} by short-lived programs")
    if wrong := {answer: times for answer, times in answers.items() if answer != b"200"}:
        arena.fail(f"short-lived programs were answered {wrong}")


async def _short_lives(arena: Arena) -> Counter[bytes]:
    """Return how many of them got which answer."""
    server = await asyncio.to_thread(arena.server)
    loop = asyncio.get_running_loop()
    begun = loop.time()
    lives: list[asyncio.Task[bytes]] = []
    while (now := loop.time()) < begun + arena.seconds:
        while len(lives) < (now - begun) * A_SECOND:
            lives.append(loop.create_task(say(server, SHORT_LIFE, ANSWER_S, SHORT_LIVED)))
        await asyncio.sleep(1 / A_SECOND)
    return Counter(answer[:3] for answer in await asyncio.gather(*lives))


async def returns(arena: Arena) -> None:
    """Connections attach to one session, use it and end, as fast as they can; others stay, and attach to it again and
    again."""
    (opened,) = await arena.dialogue([OPEN])
    back = b"SESSION %b\r\n" % opened.split()[3]
    server = await asyncio.to_thread(arena.server)
    until = asyncio.get_running_loop().time() + arena.seconds
    answers: Counter[bytes] = Counter()

    async def come_back() -> None:
        while asyncio.get_running_loop().time() < until:
            answers[(await say(server, back + b"GETB nothing BOUND\r\n", ANSWER_S, SHORT_LIVED))[:14]] += 1

    crowds: list[Crowd] = []
    await asyncio.gather(arena.besiege(RETURNING, crowds=crowds, repeated=back * AT_ONCE),
                         *(come_back() for _ in range(RETURNING)))
    arena.note(f"{sum(answers.values()):,} connections came back to it, "
               f"those that stayed {sum(crowd.good for crowd in crowds):,} times")
    arena.expect(answers.keys() <= {b"200 OK SESSION"}, f"they were answered {dict(answers)}")


ATTACKS = (
    Attack("sessions", "one owner opens 120,000 sessions; 111 short-lived programs a second leave theirs", sessions,
           seconds=15, habits=Habits(source=ORDINARY, sessions=True, cycles=20), bounds=Bounds(growth_mb=400)),
    Attack("session-returns", "a flood of connections comes back to one session", returns,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=200)),
)
