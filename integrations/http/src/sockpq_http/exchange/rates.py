"""The rates of queues, for the header `RateLimit-Policy` of takes (draft-ietf-httpapi-ratelimit-headers)."""

from __future__ import annotations

import re
import time
from collections import OrderedDict

import sockpq
from sockpq.aio import Client

KNOWN_S = 30.0          # for which the rate of a queue is not asked for again
QUEUES_MAX = 1000       # whose rates are known

_RATE = re.compile(r"(\d+) PER (\d+(?:\.\d+)?)")


class Rates:
    """The rates of the queues from which jobs are taken; they change rarely, so they are remembered for a while."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[float, str | None]] = OrderedDict()

    async def policy(self, client: Client, user: str, queue: str) -> str | None:
        """Return the value of the header; None for a queue without a rate, or one that the user may not look at."""
        until, value = self._known.get((user, queue), (float("-inf"), None))
        if until > time.monotonic():
            return value
        try:
            value = await _policy(client, queue)
        except sockpq.SockpqError:
            value = None
        self._known[user, queue] = (time.monotonic() + KNOWN_S, value)
        self._known.move_to_end((user, queue))
        if len(self._known) > QUEUES_MAX:
            self._known.popitem(last=False)
        return value


async def _policy(client: Client, queue: str) -> str | None:
    settings = await client.queue_config(queue, timeout=1.0)
    match = _RATE.match(settings.get("rate", ""))
    if match:
        return f'"{queue}";q={match[1]};w={match[2]}'
    pulse = settings.get("pulse")
    if pulse is None:
        return None
    figures = await client.pulse_stat(pulse, timeout=1.0)
    return f'"{pulse}";q={figures["rate"]:g};w={figures["per"]:g}'
