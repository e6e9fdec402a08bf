"""The program `sockpq-http serve` between hostile clients and the cluster."""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from sockpq.aio import Client, Job
from sockpq_http.values.breadth import VALUES_MAX

from tests.hostile.arena import Arena, say
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.hostile.program import Program, free_door, running

PLACES = 400
SILENT = 300
HEAD_S = 10.0               # in which a request's head must have come
BODIES = 60                 # which do not end
USERS = 4                   # of each kind of costly bodies
AGAIN_S = 0.02
SAY_S = 10.0
MEMORY_MIB = 64
BODY_MIB = 4
READERS = 30                # that do not read; fewer than the requests that are executed at a time
UNREADING = 60              # of large answers, which is four times what the program may hold
LISTED, LISTING = 30_000, 20     # queues, and clients of each list
HANGING_UP = 40             # at a time; all clients are one user, who may have 100 requests in execution
HANG_UP_S = 0.05
LEASE_S = 2
JOBS = 200
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=150)


def request(method: str, path: str, body: bytes = b"", *, close: bool = False, length: int | None = None) -> bytes:
    """A request as an ordinary client sends it."""
    lines = [
        f"{method} {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json",
        f"Content-Length: {len(body) if length is None else length}", *(["Connection: close"] if close else []),
    ]
    return "\r\n".join([*lines, "", ""]).encode() + body


def names(count: int) -> bytes:
    """Return so many members of an object, each of which is wrong as a field and as a header."""
    return b",".join(b'"%d":1' % number for number in range(count))


async def _put(door: str) -> bytes:
    """Be an ordinary client; returns what is wrong with the answer."""
    body = json.dumps({"json": "x", "ttl": 5}).encode()
    answer = await say(door, request("POST", "/v1/queues/rest_own/jobs", body, close=True), SAY_S)
    return b"" if answer.startswith(b"HTTP/1.1 20") else answer[:300] or b"nothing"


@asynccontextmanager
async def program(arena: Arena) -> AsyncIterator[Program]:
    """The program before the arena's cluster."""
    door = free_door()
    command = [
        sys.executable, "-m", "sockpq_http.main", "serve", "--listen", door, "--servers",
        ",".join(arena.cluster.servers), "--connections-max", str(PLACES), "--memory-max", str(MEMORY_MIB),
        "--body-max", str(BODY_MIB), "--drain", "0",
    ]
    async with running(arena, door, command, _put) as found:
        yield found


async def halves(arena: Arena) -> None:
    """Connections that say nothing, or half a head, or leave a body without its end; they come again when cut off."""
    async with program(arena) as rest, AsyncExitStack() as stack:
        half = request("POST", "/v1/queues/q/jobs", b"{" + b" " * 1000, length=2000)
        crowds = [
            await stack.enter_async_context(Crowd(rest.door, count, opening=opening, again_s=again_s))
            for count, opening, again_s in ((SILENT, b"", None), (SILENT, half[:60], None), (BODIES, half, AGAIN_S))]
        await asyncio.sleep(max(arena.seconds, HEAD_S + 6.0))
        for crowd in crowds[:2]:
            arena.expect(crowd.cut + crowd.refused >= SILENT, f"{crowd.cut} of {SILENT} connections were cut off")


async def bodies(arena: Arena) -> None:
    """Bodies that are costly to read: deep and wide JSON, thousands of jobs, as many wrong values as there may be, long
    texts, headers without end."""
    async with program(arena) as rest, AsyncExitStack() as stack:
        size = BODY_MIB * MIB - 100
        many = b'{"jobs":[' + b",".join([b'{"json":1}'] * 300_000) + b"]}"
        floods = [
            request("POST", "/v1/queues/rest_bodies/jobs", b'{"json":' + b"[" * size),
            request("POST", "/v1/queues/rest_bodies/jobs", b'{"json":[' + b"1," * (size // 2) + b"1]}"),
            request("POST", "/v1/queues/rest_bodies/jobs", many),
            request("POST", "/v1/transactions", b'{"operations":[' + b",".join([b'{"op":"x"}'] * 300_000) + b"]}"),
            request("POST", "/v1/queues/rest_bodies/take", b'{"queues":[' + b",".join([b'"q"'] * 900_000) + b"]}"),
            request("POST", "/v1/jobs/done", b'{"ids":[' + b",".join([b'"a"'] * 900_000) + b"]}"),
            request("POST", "/v1/queues/rest_bodies/jobs", b" " * (2 * size)),
            request("POST", "/v1/queues/rest_bodies/jobs", b'{"ttl":1,"text":"' + b"," * (size - 100) + b'"}'),
            request("POST", "/v1/queues/rest_bodies/jobs", b"{" + names(VALUES_MAX - 1) + b"}"),
            request("POST", "/v1/transactions",
                    b'{"operations":[{"op":"put","queue":"q","headers":{' + names(VALUES_MAX - 10) + b"}}]}"),
            b"GET /v1/queues HTTP/1.1\r\nHost: localhost\r\n" + b"X: 1\r\n" * 100_000,
            b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        ]
        for flood in floods:
            await stack.enter_async_context(Crowd(rest.door, USERS, repeated=flood, again_s=AGAIN_S))
        await asyncio.sleep(arena.seconds)


async def unread(arena: Arena) -> None:
    """Clients that ask for the list of all queues, for a search and for events again and again, and read nothing."""
    with arena.client() as client:
        for number in range(50):
            client.put_many(f"rest_list_{number}", [b"x" * 10_000] * 20, ttl=60)
    async with program(arena) as rest, AsyncExitStack() as stack:
        for path in ("/v1/queues", "/v1/find?count=1000", "/v1/events?types=PUT", "/openapi.json", "/metrics"):
            await stack.enter_async_context(
                Crowd(rest.door, READERS // 5, repeated=request("GET", path), reads=False, again_s=AGAIN_S))
        await asyncio.sleep(arena.seconds)


async def fill_lists(arena: Arena) -> None:
    """Put a job into each of very many queues, which also are so many groups."""
    await arena.put_lists([f"rest_listed_{number}" for number in range(LISTED)])


async def lists(arena: Arena) -> None:
    """Clients that ask for the list of very many queues again and again."""
    async with program(arena) as rest, AsyncExitStack() as stack:
        for path in ("/v1/queues", "/v1/groups"):
            await stack.enter_async_context(Crowd(rest.door, LISTING, repeated=request("GET", path), again_s=AGAIN_S))
        await asyncio.sleep(arena.seconds)


async def answers(arena: Arena) -> None:
    """Clients that ask for one large job and do not read it, and others that do."""
    data = b"x" * (BODY_MIB * MIB - 1000)
    with arena.client() as client:
        client.put("rest_large", data, key="k")
    async with program(arena) as rest, AsyncExitStack() as stack:
        peek = request("GET", "/v1/queues/rest_large/keys/k")
        await stack.enter_async_context(Crowd(rest.door, UNREADING, repeated=peek, reads=False, again_s=AGAIN_S))
        await stack.enter_async_context(Crowd(rest.door, READERS // 3, repeated=peek, again_s=AGAIN_S))
        await asyncio.sleep(arena.seconds)


async def hang_ups(arena: Arena) -> None:
    """Clients that wait for jobs and hang up: what they would have got is for others."""
    async with program(arena) as rest, Client(arena.cluster.servers, tls=arena.cluster.ca) as client:
        body = json.dumps({"wait": 60, "lease": LEASE_S, "count": 5}).encode()
        host, _, port = rest.door.rpartition(":")
        until = time.monotonic() + arena.seconds

        async def hang_up() -> None:
            while time.monotonic() < until:
                try:
                    _, writer = await asyncio.open_connection(host, int(port))
                except OSError:
                    continue
                writer.write(request("POST", "/v1/queues/rest_hung/take", body))
                await asyncio.sleep(HANG_UP_S)
                writer.transport.abort()

        async def put() -> None:
            for number in range(JOBS):
                await client.put("rest_hung", b"%d" % number)
                await asyncio.sleep(arena.seconds / JOBS)

        await asyncio.gather(put(), *(hang_up() for _ in range(HANGING_UP)))
        await asyncio.sleep(2 * LEASE_S)
        left = {job.data async for job in _all(client, "rest_hung")}
        arena.expect(len(left) == JOBS, f"{JOBS - len(left)} of {JOBS} jobs are lost")


async def _all(client: Client, queue: str) -> AsyncIterator[Job]:
    """Take all jobs of a queue."""
    while jobs := await client.get_many(100, queue, expire=60, wait=2 * LEASE_S):
        for job in jobs:
            yield job


ATTACKS = (
    Attack("rest-halves", "660 connections to sockpq-http, which has 400 places, say nothing, or half of something",
           halves, seconds=16, bounds=BOUNDS),
    Attack("rest-bodies", "clients of sockpq-http send bodies and heads that are costly to read", bodies,
           bounds=BOUNDS),
    Attack("rest-unread", "clients of sockpq-http read no answers", unread, bounds=BOUNDS),
    Attack("rest-lists", "clients of sockpq-http ask for lists of 30,000 queues and groups", lists,
           prepare=fill_lists, bounds=BOUNDS),
    Attack("rest-answers", "clients of sockpq-http ask for a job of 4 MiB, and most of them read nothing", answers,
           bounds=BOUNDS),
    Attack("rest-hang-ups", "clients of sockpq-http that wait for jobs hang up", hang_ups, bounds=BOUNDS),
)
