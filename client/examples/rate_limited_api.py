"""Many programs, one rate limit: python rate_limited_api.py [WORKERS [SECONDS_PER_PHASE [PICTURE.svg]]]

A pretended API takes ten requests in any second from all workers together. Then it takes half of that for a while,
because of others; it recovers; and at last it says that the daily limit is reached. The workers know nothing of each
other: each waits for its turn of the pulse "api", and says how its request went.
"""

import asyncio
import contextlib
import os
import sys
import time
from collections import deque

from sockpq import PulseNotFound, aio
from sockpq.errors import WaitTimeout

RATE, HALF = 10, 5
WORKERS = int(sys.argv[1]) if len(sys.argv) > 1 else 200
PHASE_S = float(sys.argv[2]) if len(sys.argv) > 2 else 20.0
PHASES = ("normal", "half as fast", "normal again", "daily limit")


class Api:
    """Counts the requests of the last second, and refuses what is too much."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.last_second: deque[float] = deque()
        self.seen: list[tuple[float, str]] = []     # each request: when, and what was answered

    def phase(self) -> int:
        return int((time.monotonic() - self.begun) / PHASE_S)

    def request(self) -> str:
        now, phase = time.monotonic(), self.phase()
        while self.last_second and self.last_second[0] <= now - 1:
            self.last_second.popleft()
        if phase >= 3:
            answer = "dailyLimitExceeded"
        elif len(self.last_second) >= (HALF if phase == 1 else RATE):
            answer = "userRateLimitExceeded"
        else:
            self.last_second.append(now)
            answer = "ok"
        self.seen.append((now - self.begun, answer))
        return answer


async def work(client: aio.Client, api: Api) -> None:
    while api.phase() < len(PHASES):
        try:
            async with client.pulse("api").turn(within=2) as turn:
                answer = api.request()
                if answer == "userRateLimitExceeded":
                    turn.slow(answer)
                elif answer == "dailyLimitExceeded":
                    turn.sleep(3600, answer)
        except WaitTimeout:
            continue                                # it is not our turn yet: look at the clock, and wait on


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
        f'<text x="4" y="{134 - 10 * n}">{n}</text>' for n in (0, HALF, RATE)
    )
    names = "".join(
        f'<text x="{30 + 8 * PHASE_S * number}" y="148">{name}</text>' for number, name in enumerate(PHASES)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{40 + 8 * seconds}" height="156" font-family="sans-serif" '
        f'font-size="10"><rect width="100%" height="100%" fill="white"/>{lines}{"".join(bars)}{names}</svg>\n'
    )


async def main() -> None:
    async with aio.Client(os.environ["SOCKPQ_SERVERS"]) as client:
        with contextlib.suppress(PulseNotFound):
            await client.pulse_delete("api")
        # A little slower than the API allows: requests do not take equally long to get there.
        await client.pulse_create("api", rate=RATE, per=1.1)
        api = Api()
        await asyncio.gather(*(work(client, api) for _ in range(WORKERS)))
        for number, name in enumerate(PHASES):
            answers = [answer for at, answer in api.seen if int(at / PHASE_S) == number]
            print(f"{name}: {len(answers)} requests, {len(answers) - answers.count('ok')} refused")
    if len(sys.argv) > 3:
        with open(sys.argv[3], "w") as file:
            file.write(picture(api.seen))


asyncio.run(main())
