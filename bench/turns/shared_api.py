"""A limited API that clients of a pulse share with a program that takes no turns, with and without SPREAD."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack

from sockpq.aio import Client

from devcluster.cluster import LocalCluster

CLIENTS = 20
RATE = 10                       # turns a second
PAUSE_S = (0.1, 0.3)            # of the program that takes no turns, between two requests
WORK_S = 0.1                    # of a request, where the API limits how many there are at once
AIR_S = 1.5                     # before the first request counts


class Api:
    """An HTTP server that accepts or refuses requests, and counts both by who sent them."""

    def __init__(self, admit: Callable[[float, int], bool], work_s: float) -> None:
        self.seen: Counter[tuple[str, int]] = Counter()     # who, status
        self._admit = admit
        self._work_s = work_s
        self._running = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            who = (await reader.readuntil(b"\r\n\r\n")).split()[1].decode()
        except asyncio.IncompleteReadError:         # a client that was cancelled before it asked
            writer.close()
            return
        status = 200 if self._admit(time.monotonic(), self._running) else 429
        self.seen[who, status] += 1
        if status == 200:
            self._running += 1
            await asyncio.sleep(self._work_s)
            self._running -= 1
        writer.write(b"HTTP/1.1 %d .\r\nContent-Length: 0\r\nConnection: close\r\n\r\n" % status)
        await writer.drain()
        writer.close()


def at_once(most: int) -> Callable[[float, int], bool]:
    """Admit this many requests at the same time."""
    return lambda now, running: running < most


def leaky(per_s: float, burst: int) -> Callable[[float, int], bool]:
    """Admit as nginx does with `limit_req rate=<per_s>r/s burst=<burst> nodelay`."""
    level, last = 0.0, 0.0

    def admit(now: float, running: int) -> bool:
        nonlocal level, last
        found = max(0.0, level - (now - last) * per_s)
        if found > burst:
            return False
        level, last = found + 1, now
        return True
    return admit


def sliding(most: int) -> Callable[[float, int], bool]:
    """Admit this many requests in any second."""
    admitted: deque[float] = deque()

    def admit(now: float, running: int) -> bool:
        while admitted and admitted[0] <= now - 1:
            admitted.popleft()
        if len(admitted) >= most:
            return False
        admitted.append(now)
        return True
    return admit


APIS: dict[str, tuple[Callable[[], Callable[[float, int], bool]], float]] = {
    "4 requests at once, of 0.1 s": (lambda: at_once(4), WORK_S),
    "15 a second, 3 more at once": (lambda: leaky(15, 3), 0.0),
    "12 in any second": (lambda: sliding(12), 0.0),
    "10 in any second": (lambda: sliding(10), 0.0),
}


def shared(cluster: LocalCluster, seconds: float) -> Iterator[str]:
    """Each API, without and with SPREAD."""
    server = cluster.direct(cluster.wait_for_leader())
    for name, (admit, work_s) in APIS.items():
        for spread in (False, True):
            seen = asyncio.run(_share(server, Api(admit(), work_s), spread=spread, seconds=seconds))
            refused = ", ".join(
                f"{who}: {seen[who, 429]} of {seen[who, 429] + seen[who, 200]} refused" for who in ("turns", "other"))
            yield f"{name}, {'with' if spread else 'without'} SPREAD: {refused}"


async def _share(server: str, api: Api, *, spread: bool, seconds: float) -> Counter[tuple[str, int]]:
    http = await asyncio.start_server(api.serve, "127.0.0.1", 0)
    port = http.sockets[0].getsockname()[1]
    async with AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client([server])) for _ in range(CLIENTS)]
        await clients[0].pulse_create("shared", rate=RATE, spread=spread)
        tasks = [asyncio.ensure_future(_take_turns(client, port)) for client in clients]
        tasks.append(asyncio.ensure_future(_take_none(port)))
        await asyncio.sleep(AIR_S)
        api.seen.clear()
        await asyncio.sleep(seconds)
        seen = api.seen.copy()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await clients[0].pulse_delete("shared")
    http.close()
    return seen


async def _take_turns(client: Client, port: int) -> None:
    while True:
        async with client.pulse("shared").turn():
            await _request(port, "turns")


async def _take_none(port: int) -> None:
    rng = random.Random(1)
    while True:
        await asyncio.sleep(rng.uniform(*PAUSE_S))
        await _request(port, "other")


async def _request(port: int, who: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET %s HTTP/1.1\r\nHost: api\r\n\r\n" % who.encode())
    await reader.read()
    writer.close()
