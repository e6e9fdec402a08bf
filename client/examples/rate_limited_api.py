"""Many programs, one rate limit: python rate_limited_api.py [WORKERS [SECONDS_PER_PHASE [PICTURE.svg]]]

A simulated API allows ten requests in any second for each address. All workers share one address, and share it with a
program that takes no turns and asks whenever it likes, about once a second. The API works well for a while; then it can
serve only five requests a second, and its answers take longer and longer; it recovers; and at last it reports that the
daily limit is reached. The workers know nothing of each other: each waits for its turn of the pulse "example_api", and
reports the outcome of its request.
"""

import asyncio
import contextlib
import random
import signal
import sys
import time
from collections import defaultdict, deque

from sockpq import PulseNotFound, aio
from sockpq.errors import WaitTimeout

PULSE = "example_api"       # made again
LIMIT = 10                  # requests in any second, for each address
APART_S = 0.15              # between ours: two in three of them, as the other program needs some and packets need time
SLOW_S = 1.0                # an answer that takes longer means that the API has too much to do
WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
PHASE_S = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
PHASES = ("normal", "slow", "normal again", "daily limit")
SERVED_IN_S = (0.02, 0.2, 0.02, 0.02)       # one request after the other
OURS = "192.0.2.1"


class Api:
    """Counts the requests of the last second from each address, and refuses those above the limit."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.last_second: defaultdict[str, deque[float]] = defaultdict(deque)
        self.free_at = 0.0
        self.seen: list[tuple[float, str]] = []     # each request of a worker: when, and what was answered

    def phase(self) -> int:
        return int((time.monotonic() - self.begun) / PHASE_S)

    async def request(self, address: str) -> str:
        now, phase = time.monotonic(), min(self.phase(), len(PHASES) - 1)
        last = self.last_second[address]
        while last and last[0] <= now - 1:
            last.popleft()
        if phase == 3:
            return "dailyLimitExceeded"
        if len(last) >= LIMIT:
            return "userRateLimitExceeded"
        last.append(now)
        self.free_at = max(self.free_at, now) + SERVED_IN_S[phase]
        await asyncio.sleep(self.free_at - now)
        return "ok"


async def work(client: aio.Client, api: Api) -> None:
    while api.phase() < len(PHASES):
        try:
            async with client.pulse(PULSE).turn(within=2) as turn:
                begun = time.monotonic()
                answer = await api.request(OURS)
                api.seen.append((begun - api.begun, answer))
                if answer == "dailyLimitExceeded":
                    turn.sleep(3600, answer)
                elif answer == "userRateLimitExceeded" or time.monotonic() > begun + SLOW_S:
                    turn.slow(answer)
        except WaitTimeout:
            continue                                # it is not our turn yet: look at the clock, and wait on


async def ask_without_turns(api: Api) -> None:
    """Ask without taking turns, as somebody else's program does."""
    while api.phase() < len(PHASES):
        await asyncio.sleep(random.expovariate(1.0))
        await api.request(OURS)


def picture(seen: list[tuple[float, str]]) -> str:
    """Requests in each second, those that were refused in red."""
    seconds = int(PHASE_S * len(PHASES))
    bars = []
    for second in range(seconds):
        here = [answer for at, answer in seen if second <= at < second + 1]
        good, bad = here.count("ok"), len(here) - here.count("ok")
        for count, under, color in ((good, 0, "#4477aa"), (bad, good, "#cc3311")):
            top = 130 - 10 * (under + count)
            bars.append(f'<rect x="{30 + 8 * second}" y="{top}" width="6" height="{10 * count}" fill="{color}"/>')
    lines = "".join(
        f'<line x1="28" x2="{30 + 8 * seconds}" y1="{130 - 10 * n}" y2="{130 - 10 * n}" stroke="#bbb"/>'
        f'<text x="4" y="{134 - 10 * n}">{n}</text>' for n in (0, 5, LIMIT)
    )
    names = "".join(
        f'<text x="{30 + 8 * PHASE_S * number}" y="148">{name}</text>' for number, name in enumerate(PHASES)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{40 + 8 * seconds}" height="156" font-family="sans-serif" '
        f'font-size="10"><rect width="100%" height="100%" fill="white"/>{lines}{"".join(bars)}{names}</svg>\n'
    )


async def say_phases(api: Api) -> None:
    """Announce each phase, as the results come only at the end."""
    for number, name in enumerate(PHASES):
        print(f"{name}: waiting {PHASE_S:g} s, phase {number + 1} of {len(PHASES)} ..", file=sys.stderr)
        await asyncio.sleep(max(0.0, api.begun + (number + 1) * PHASE_S - time.monotonic()))


async def main() -> None:
    async with aio.Client() as client:
        with contextlib.suppress(PulseNotFound):
            await client.pulse_delete(PULSE)
        # Turns that come one by one arrive one by one. Of ten at once the API sees twenty in a second when the first
        # ten are a little late. Each answer also says whether the next should come later.
        await client.pulse_create(PULSE, rate=1, per=APART_S, step=0.03)
        api = Api()
        await asyncio.gather(say_phases(api), ask_without_turns(api), *(work(client, api) for _ in range(WORKERS)))
        for number, name in enumerate(PHASES):
            answers = [answer for at, answer in api.seen if int(at / PHASE_S) == number]
            print(f"{name}: {len(answers)} requests, {len(answers) - answers.count('ok')} refused")
        refused = len(api.seen) - [answer for _, answer in api.seen].count("ok")
        print(f"together: {len(api.seen)} requests, {100 * refused / max(1, len(api.seen)):.1f}% refused")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as file:
            file.write(picture(api.seen))


signal.signal(signal.SIGINT, signal.SIG_DFL)        # Ctrl-C ends it at once; its jobs come back with their leases
asyncio.run(main())
