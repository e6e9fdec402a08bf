"""Queries with long answers, or that look at everything there is, without end."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Sequence

from tests.hostile.arena import CALL_S, PUTS_MAX, Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd

ASKING = 12                 # connections
MANY = 20                   # of each question before the answer to the first is read
QUEUES = 40_000
WORKERS = 9000
BINDINGS = 20_000
DELAYED = 150_000
DELAY_S = 3600
READERS = 12                # of each page
BOUNDS = Bounds(p50_ms=20, gap_s=1, growth_mb=300)


async def fill_queues(arena: Arena) -> None:
    """Put a job into each of 40,000 queues."""
    await arena.put_lists([f"list.{number}" for number in range(QUEUES)])


async def fill_topics(arena: Arena) -> None:
    """Make 20,000 bindings, of queues without jobs."""
    await arena.tell([f"TOPIC BIND t{number % 100} q{number}\r\n" for number in range(BINDINGS)])


async def fill_workers(arena: Arena) -> None:
    """Register 9,000 workers in one session."""
    await arena.tell(["SESSION TTL 600\r\n", *(f"WORKER w{number} 1 0\r\n" for number in range(WORKERS))])


async def fill_delayed(arena: Arena) -> None:
    """Put 150,000 delayed jobs into one tube."""
    for _ in range(DELAYED // PUTS_MAX):
        await arena.put_lists(["kicked"] * PUTS_MAX, lambda number: f" DELAY {DELAY_S}")


async def queue_list(arena: Arena) -> None:
    """List all queues, again and again, from many clients."""
    await _ask(arena, b"QUEUE LIST\r\n")


async def topic_list(arena: Arena) -> None:
    """List all bindings, again and again, from many clients."""
    await _ask(arena, b"TOPIC LIST\r\n")


async def worker_list(arena: Arena) -> None:
    """List all workers, again and again, from many clients."""
    await _ask(arena, b"WORKER LIST\r\n")


async def _ask(arena: Arena, question: bytes) -> None:
    crowds: list[Crowd] = []
    await arena.besiege(ASKING, repeated=question * MANY, crowds=crowds)
    arena.note(f"{sum(crowd.good for crowd in crowds):,} answers")
    arena.expect(any(crowd.good for crowd in crowds), "nobody was answered")


async def fill_items(arena: Arena) -> None:
    """Put a job into each of 40,000 queues, each with an item and a group of its own."""
    await arena.put_lists([f"list.{number}" for number in range(QUEUES)],
                          lambda number: f" IS item{number} GROUP g{number}")


async def pages(arena: Arena) -> None:
    """Ask for the pages of the dashboard and the metrics, from as many clients as possible."""
    await _read(arena, (b"/queues?sort=ready", b"/items", b"/groups?sort=ready", b"/queues", b"/metrics"))


async def page_searches(arena: Arena) -> None:
    """Ask for pages that search all jobs or all names, and figures for charts."""
    await _read(arena, (b"/find?search=list", b"/dead", b"/jobs?key=none", b"/figures?of=cluster&span=7d", b"/live"))


async def _read(arena: Arena, paths: Sequence[bytes]) -> None:
    door = arena.cluster.http(await asyncio.to_thread(arena.leader))
    crowds = [Crowd(door, READERS, opening=b"GET %b HTTP/1.1\r\nHost: localhost\r\n\r\n" % path, again_s=0.01)
              for path in paths]
    async with contextlib.AsyncExitStack() as held:
        for crowd in crowds:
            await held.enter_async_context(crowd)
        await asyncio.sleep(arena.seconds)
        made, shown = sum(crowd.made for crowd in crowds), sum(crowd.good for crowd in crowds)
    arena.note(f"{shown:,} pages shown, {made:,} asked for, {sum(crowd.bytes for crowd in crowds) >> 20} MiB")
    arena.expect(bool(shown), "no page was shown")


async def stats(arena: Arena) -> None:
    """Ask all nodes for statistics, as monitoring would; and the list of tubes, and the figures of one."""
    questions = b"stats\r\nstats-tube default\r\n" * MANY + b"list-tubes\r\n"
    async with contextlib.AsyncExitStack() as held:
        crowds = [
            await held.enter_async_context(Crowd(arena.cluster.beanstalkd(name), ASKING, repeated=questions))
            for name in arena.cluster.names
        ]
        await asyncio.sleep(arena.seconds)
        told = [crowd.bytes for crowd in crowds]
    arena.note(f"{sum(told) >> 20} MiB told")
    arena.expect(all(told), "not all nodes have answered")


async def kick(arena: Arena) -> None:
    """Kick very many jobs and close; all other clients of the node work on."""
    node = arena.cluster.beanstalkd(await asyncio.to_thread(arena.leader))
    host, _, port = node.rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    _, kicking = await asyncio.open_connection(host, int(port))
    kicking.write(b"use kicked\r\nkick %d\r\n" % DELAYED)
    await kicking.drain()
    await asyncio.sleep(0.1)
    kicking.close()
    longest, until = 0.0, time.monotonic() + arena.seconds
    while time.monotonic() < until:
        asked = time.monotonic()
        async with asyncio.timeout(CALL_S):
            writer.write(b"put 0 0 60 1\r\nx\r\n")
            await reader.readline()
        longest = max(longest, time.monotonic() - asked)
        await asyncio.sleep(0.01)
    writer.close()
    arena.note(f"others waited {longest:.2f} s at most")
    arena.expect(longest < 1, f"another client of beanstalkd waited {longest:.1f} s")


ATTACKS = (
    Attack("queue-list", "QUEUE LIST of 40,000 queues without end, on 12 connections", queue_list, prepare=fill_queues,
           bounds=BOUNDS),
    Attack("topic-list", "TOPIC LIST of 20,000 bindings without end, on 12 connections", topic_list,
           prepare=fill_topics, bounds=BOUNDS),
    Attack("worker-list", "WORKER LIST of 9,000 workers without end, on 12 connections", worker_list,
           prepare=fill_workers, bounds=BOUNDS),
    Attack("beanstalkd-stats", "stats, stats-tube and list-tubes of 40,000 tubes without end, at every node", stats,
           prepare=fill_queues, bounds=BOUNDS),
    Attack("pages", "pages of the dashboard and metrics of 40,000 queues, items and groups, on 60 connections", pages,
           prepare=fill_items, bounds=BOUNDS),
    Attack("page-searches", "pages that search 40,000 queues, and figures, on 60 connections", page_searches,
           prepare=fill_items, bounds=BOUNDS),
    Attack("beanstalkd-kick", "a kick of 150,000 delayed jobs, and then a closed connection", kick,
           prepare=fill_delayed, bounds=BOUNDS),
)
