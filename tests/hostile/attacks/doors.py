"""The same attacks at every listener: the native port, beanstalkd's, HTTP, and what a web page can reach."""

from __future__ import annotations

import asyncio
import socket
import time
from contextlib import AsyncExitStack
from pathlib import Path

from sockpq import QueueNotFound

from tests.hostile.arena import Arena, say
from tests.hostile.attack import MIB, Attack, Bounds
from tests.hostile.attacks.memory import BODIES, BODY, MEMORY_MB, PIECE
from tests.hostile.crowd import Crowd

HELLO_S = 3
CUT_S = HELLO_S + 4.0
SILENT = 10
LOOK_S = 0.2
WATCHERS, WATCHED = 100, 999
LISTS = 80
CUT = "connection cut, "           # in the log of a node
HEARERS = 1000
MESSAGES = 4
READERS = 60
ASKING, PEEKS = 400, 200
SMALL, LAST = 60_000, 4             # together more than the kernel of the client takes
UNREAD_S = 3
CLOSING = ("04", "09", "0B")        # FIN_WAIT1, LAST_ACK, CLOSING of /proc/net/tcp
MARK_MB = 400
AGAIN_S = 0.1
BURST, BURSTS_MIN = 100, 150
BURST_S = 0.02
SAY_S = 5.0
VICTIM = "victim"

BUSY = b"503 Busy\r\n"
METRICS = b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n"
EVENTS = b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n"
COMMANDS = b"QUEUE DELETE victim FORCE\r\nPUT victim 0 1\r\nx"
PUT = b"use victim\r\nput 0 0 60 1\r\nx\r\n"
HEADERS = b"Host: %b\r\nOrigin: http://evil.example\r\nContent-Type: text/plain\r\nContent-Length: 99\r\n\r\n"
PAGES = (b"POST / HTTP/1.1\r\n", b"GET /?x HTTP/1.1\r\n", b"POST /%b HTTP/1.1\r\n" % (b"x" * 3000),
         b"\r\nPOST / HTTP/1.1\r\n", b"\x16\x03\x01\x00\x05\r\n")


async def bodies(arena: Arena) -> None:
    """Send puts that never end to the leader's listener; native PUTs must go on."""
    leader = await asyncio.to_thread(arena.leader)
    async with Crowd(arena.cluster.beanstalkd(leader), BODIES, opening=b"put 0 0 60 %d\r\n" % BODY, repeated=PIECE,
                     most_bytes=BODY - len(PIECE), again_s=AGAIN_S):
        await asyncio.sleep(arena.seconds)


async def watching(arena: Arena) -> None:
    """Watch very many names on connections that wait for a job, and list all of them without reading."""
    def watch(number: int) -> bytes:
        names = (b"%03d-%04d-%b" % (number, one, b"x" * 180) for one in range(WATCHED))
        return b"".join(b"watch %b\r\n" % name for name in names) + b"reserve\r\n"

    cluster = arena.cluster
    leader = await asyncio.to_thread(arena.leader)
    follower = next(name for name in cluster.names if name != leader)
    async with AsyncExitStack() as stack:
        crowds = []
        for name in (leader, follower):
            door = cluster.beanstalkd(name)
            crowds.append(await stack.enter_async_context(Crowd(door, WATCHERS // 2, opening=watch)))
        await asyncio.sleep(arena.seconds / 3)
        for name in (leader, follower):
            door = cluster.beanstalkd(name)
            crowds.append(await stack.enter_async_context(
                Crowd(door, LISTS // 2, opening=b"list-tubes\r\n", reads=False)))
        await asyncio.sleep(arena.seconds * 2 / 3)
        arena.note(f"{sum(crowd.cut for crowd in crowds)} of {WATCHERS + LISTS} cut")


async def silent(arena: Arena) -> None:
    """Open connections that send nothing, and some that send half a command, at every listener of every node."""
    cluster = arena.cluster
    crowds = [Crowd(door, SILENT, opening=opening) for name in cluster.names
              for door in (cluster.direct(name), cluster.beanstalkd(name), cluster.http(name))
              for opening in (b"", b"PU")]
    await asyncio.gather(*(crowd.__aenter__() for crowd in crowds))
    try:
        until = time.monotonic() + CUT_S
        while any(crowd.standing for crowd in crowds) and time.monotonic() < until:
            await asyncio.sleep(LOOK_S)
        left = sum(crowd.standing for crowd in crowds)
        arena.expect(not left, f"{left} of {sum(crowd.made for crowd in crowds)} silent connections were not cut")
    finally:
        await asyncio.gather(*(crowd.__aexit__(None, None, None) for crowd in crowds))


async def deaf_hearers(arena: Arena) -> None:
    """Send large messages to many subscribers that do not read; each is accepted, at once or when some of these are
    cut.
    """
    server = await asyncio.to_thread(arena.server)
    message = b"NOTIFY loud %d\r\n%b" % (MIB, bytes(MIB))
    async with Crowd(server, HEARERS, opening=b"SUBSCRIBE MSG loud\r\n", reads=False):
        await asyncio.sleep(arena.seconds / 4)
        for _ in range(MESSAGES):
            answer, until = BUSY, time.monotonic() + SAY_S
            while answer == BUSY and time.monotonic() < until:      # a quarter of the memory is held for subscribers
                answer = await say(server, message, SAY_S)
                await asyncio.sleep(LOOK_S if answer == BUSY else 0)
            arena.expect(answer.startswith(b"200"), f"NOTIFY is answered {answer[:40]!r}")
            await asyncio.sleep(arena.seconds / 4 / MESSAGES)
        await asyncio.sleep(arena.seconds / 2)
    # The crowd sees no cut, as it does not read.
    logs = [await asyncio.to_thread(arena.cluster.logs, name) for name in arena.cluster.names]
    cut = sum(log.count(CUT) for log in logs)
    arena.note(f"{cut} of {HEARERS} cut")
    arena.expect(cut >= HEARERS // 2, f"only {cut} of {HEARERS} subscribers that read nothing were cut")


async def unread_pages(arena: Arena) -> None:
    """Ask for figures and streams of events over HTTP without reading, while operators look at /healthz."""
    cluster = arena.cluster
    leader = await asyncio.to_thread(arena.leader)
    openings = (METRICS, EVENTS)
    async with Crowd(cluster.http(leader), READERS, opening=lambda number: openings[number % 2], reads=False,
                     again_s=AGAIN_S):
        until = time.monotonic() + arena.seconds
        while time.monotonic() < until:
            answer = await say(cluster.http(leader), b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", SAY_S)
            arena.expect(answer.startswith(b"HTTP/1.1 200"), f"/healthz: {answer[:40]!r}")
            await asyncio.sleep(1)


async def http_bursts(arena: Arena) -> None:
    """Connections to the port of HTTP come a hundred at once, and go; a health check is answered meanwhile.

    Each burst cuts connections that are being made, and each of these must give its place back: there are 96.
    """
    door = arena.cluster.http(await asyncio.to_thread(arena.leader))
    host, _, port = door.rpartition(":")
    address = host, int(port)
    bursts, until = 0, time.monotonic() + arena.seconds
    while time.monotonic() < until or (bursts < BURSTS_MIN and time.monotonic() < until + arena.seconds):
        await asyncio.to_thread(_burst, address)
        bursts += 1
        if bursts % 10 == 0:
            answer = await say(door, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n", SAY_S)
            arena.expect(answer.startswith(b"HTTP/1.1 200"), f"/healthz after {bursts} bursts: {answer[:50]!r}")
            if not answer.startswith(b"HTTP/1.1 200"):
                break
    arena.note(f"{bursts} bursts of {BURST} connections")


def _burst(address: tuple[str, int]) -> None:
    """Make a hundred connections without waiting for one, and leave them a moment later."""
    made = [socket.socket() for _ in range(BURST)]
    try:
        for one in made:
            one.setblocking(False)
            one.connect_ex(address)
        time.sleep(BURST_S)
    finally:
        for one in made:
            one.close()


async def put_large(arena: Arena) -> None:
    """Put a job of 1 MiB that everybody can read, by its number and in a tube."""
    leader = await asyncio.to_thread(arena.leader)
    answer = await say(arena.cluster.beanstalkd(leader), b"put 0 0 60 %d\r\n%b\r\n" % (MIB, bytes(MIB)), SAY_S)
    arena.expect(answer.startswith(b"INSERTED "), f"put is answered {answer[:40]!r}")
    arena.memory["number"] = int(answer.split()[1])


async def unread_jobs(arena: Arena) -> None:
    """Ask for one large job many times, nearly at once, from clients of all kinds that read nothing of it."""
    cluster = arena.cluster
    leader = await asyncio.to_thread(arena.leader)
    follower = next(name for name in cluster.names if name != leader)
    native, beanstalkd = b"PEEK NUMBER %d\r\n" % arena.memory["number"] * PEEKS, b"peek-ready\r\n" * PEEKS
    crowds = [
        Crowd(door(name), ASKING, opening=opening, reads=False) for name in (leader, follower)
        for door, opening in ((cluster.direct, native), (cluster.beanstalkd, beanstalkd))]
    async with AsyncExitStack() as stack:
        await asyncio.gather(*(stack.enter_async_context(crowd) for crowd in crowds))
        await asyncio.sleep(arena.seconds)


async def abandoned(arena: Arena) -> None:
    """End connections with answers that are never read: the kernel may keep none of them."""
    leader = await asyncio.to_thread(arena.leader)
    native, beanstalkd = arena.cluster.direct(leader), arena.cluster.beanstalkd(leader)
    answer = await say(beanstalkd, b"put 0 0 60 %d\r\n%b\r\n" % (SMALL, bytes(SMALL)), SAY_S)
    peeks = b"PEEK NUMBER %b\r\n" % answer.split()[-1] * LAST
    async with Crowd(native, ASKING, opening=peeks + b"QUIT\r\n", reads=False), \
            Crowd(beanstalkd, ASKING, opening=b"peek-ready\r\n" * LAST + b"quit\r\n", reads=False):
        await asyncio.sleep(arena.seconds)
        left = _left_behind({door.rpartition(":")[2] for door in (native, beanstalkd)})
        arena.expect(not left, f"the kernel still has the answers of {left} connections that have ended")


def _left_behind(ports: set[str]) -> int:
    """Return how many connections of these ports have been closed with data that was not read."""
    rows = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return sum(row[3] in CLOSING and str(int(row[1].rpartition(":")[2], 16)) in ports and int(row[4][:8], 16) > 1
               for row in rows)


async def put_victim(arena: Arena) -> None:
    """Put a queue that a web page would like to remove."""
    await arena.put_lists([VICTIM] * 10)


async def web_pages(arena: Arena) -> None:
    """Send what a page in a browser of this machine can send, to every port; and use a name of its own that points
    here.
    """
    cluster = arena.cluster
    pages = 0
    until = time.monotonic() + arena.seconds
    while time.monotonic() < until:
        for name in cluster.names:
            for door in (cluster.direct(name), cluster.beanstalkd(name), cluster.peer(name)):
                for line in PAGES:
                    pages += 1
                    await say(door, line + HEADERS % door.encode() + COMMANDS + b"\r\n" + PUT, SAY_S)
            for path in (b"/metrics", b"/healthz", b"/", b"/events", b"/act", b"/nothing"):
                answer = await say(
                    cluster.http(name), b"GET %b HTTP/1.1\r\nHost: evil.example:11363\r\n\r\n" % path, SAY_S)
                arena.expect(answer.startswith(b"HTTP/1.1 421"), f"{path!r} by a foreign name: {answer[:40]!r}")
        await asyncio.sleep(0.1)

    def left() -> int:
        with arena.client() as client:
            try:
                return int(client.queue_stat(VICTIM)["ready"])
            except QueueNotFound:
                return 0

    count = await asyncio.to_thread(left)
    arena.expect(count == 10, f"{count} of 10 jobs are left: a page was a client")
    arena.note(f"{pages} pages")


ATTACKS = (
    Attack("beanstalkd-bodies", "250 puts of 8 MiB that never end, at beanstalkd's listener", bodies,
           memory_mb=MEMORY_MB, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=MEMORY_MB)),
    Attack("beanstalkd-watching", "100 connections wait for 999 tubes each, and 80 lists of all are not read", watching,
           seconds=24, memory_mb=MEMORY_MB, excused=("PUT: 503 Busy",),
           bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=MEMORY_MB)),
    Attack("silent-doors", "connections at every door that say nothing, or half of something", silent, seconds=CUT_S,
           config={"limits": {"hello_timeout_s": HELLO_S, "command_timeout_s": HELLO_S}},
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("deaf-hearers", "messages of 1 MiB for 1,000 subscribers that do not read", deaf_hearers, seconds=16,
           memory_mb=MEMORY_MB, excused=("PUT: 503 Busy",), bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=MEMORY_MB)),
    Attack("unread-pages", "60 clients of HTTP that read neither figures nor events", unread_pages,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
    Attack("unread-jobs", "1,600 clients ask for a job of 1 MiB, 200 times each, and read nothing", unread_jobs,
           prepare=put_large, config={"limits": {"memory_mark": MARK_MB * MIB}},
           bounds=Bounds(p50_ms=20, gap_s=1, rss_mb=MARK_MB)),
    Attack("abandoned", "800 connections end without having read their last answers", abandoned,
           seconds=UNREAD_S + 12.0, config={"limits": {"answer_timeout_s": UNREAD_S}},
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("http-bursts", "a hundred connections to the port of HTTP come at once, again and again", http_bursts,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
    Attack("web-pages", "what a web page can send to every port, with commands behind the headers", web_pages,
           prepare=put_victim, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
)
