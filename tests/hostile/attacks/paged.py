"""Large jobs on the disk: commands on many of them at once must not read them all."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from sockpq import QueueNotFound

from tests.hostile.arena import Arena
from tests.hostile.attack import Attack, Bounds
from tests.hostile.crowd import Crowd
from tests.wire import Wire

DELAY_S = 60                # of the jobs that are kicked, and longer than it takes to put all
SIZE = 200_000
JOBS = 500                  # in each queue
AT_ONCE = 20
LOOK_S = 0.1
PEEKED, SHOWN, PUT_AT_ONCE = 10_000, 10_000, 100
DAMAGED = 20                # bytes at the end of a snapshot
BOUND_QUEUES, BOUND_JOBS, BOUND_SIZE, BOUND_AT_ONCE = 4, 25_000, 1000, 5000


async def put_paged(arena: Arena) -> None:
    """Put queues of jobs too large for memory."""
    body = bytes(SIZE)
    for queue, option in (("purged", ""), ("deleted", ""), ("kicked", " DELAY 3600"), ("due", f" DELAY {DELAY_S}")):
        lines = f"PUTS {AT_ONCE}\r\n".encode() + f"{queue} 0 {SIZE}{option}\r\n".encode().join([b"", *[body] * AT_ONCE])
        await arena.insist([lines] * (JOBS // AT_ONCE))
    arena.memory["due"] = time.monotonic() + DELAY_S


async def removals(arena: Arena) -> None:
    """Remove and move them, thousands by one command."""

    def remove() -> None:
        with arena.client() as client:
            disk = client.queue_stat("purged").get("on_disk", 0)
            arena.expect(disk > JOBS // 2, f"only {disk} jobs were on the disk")
            arena.expect(client.queue_purge("purged", "all") == JOBS, "not all were purged")
            client.queue_delete("deleted", force=True)
            arena.expect(client.kick("kicked", JOBS, here=True) == JOBS, "not all were kicked")
            until = float(str(arena.memory["due"])) + arena.seconds
            while client.queue_stat("due")["ready"] < JOBS and time.monotonic() < until:
                time.sleep(LOOK_S)
            arena.expect(client.queue_stat("due")["ready"] == JOBS, "not all have become ready")

    await asyncio.to_thread(remove)


async def put_shown(arena: Arena) -> None:
    """Put 10,000 jobs of 10 KB, nearly all on the disk."""
    lines = f"PUTS {PUT_AT_ONCE}\r\n".encode() + (f"shown 0 {SHOWN}\r\n".encode() + bytes(SHOWN)) * PUT_AT_ONCE
    await arena.insist([lines] * (PEEKED // PUT_AT_ONCE))


async def peeks(arena: Arena) -> None:
    """Show them without end, to four connections that read."""
    crowds: list[Crowd] = []
    await arena.besiege(4, repeated=f"PEEK shown READY COUNT {PEEKED}\r\n".encode(), crowds=crowds)
    shown = sum(crowd.bytes for crowd in crowds)
    arena.note(f"{shown >> 20} MiB shown")
    arena.expect(shown > 0, "nothing was shown")


async def put_bound(arena: Arena) -> None:
    """Put queues of a session, with 100,000 jobs, nearly all on the disk."""
    queues = [f"private{number}" for number in range(BOUND_QUEUES)]
    opened, *created = await arena.dialogue([
        b"SESSION TTL 3600\r\n", *[f"QUEUE CREATE {queue} BOUND\r\n".encode() for queue in queues]])
    arena.memory["session"] = opened.split()[3]
    arena.expect(all(answer.startswith(b"200 OK") for answer in created), f"QUEUE CREATE: {created}")
    for queue in queues:
        job = f"{queue} 0 {BOUND_SIZE}\r\n".encode() + bytes(BOUND_SIZE)
        await arena.insist([f"PUTS {BOUND_AT_ONCE}\r\n".encode() + job * BOUND_AT_ONCE] * (BOUND_JOBS // BOUND_AT_ONCE))


async def bound_end(arena: Arena) -> None:
    """End the session, and with it all of its queues."""

    def left() -> list[dict[str, int]]:
        found = []
        with arena.client() as client:
            for number in range(BOUND_QUEUES):
                with suppress(QueueNotFound):
                    found.append(client.queue_stat(f"private{number}"))
        return found

    disk = sum(figures.get("on_disk", 0) for figures in await asyncio.to_thread(left))
    arena.expect(disk > BOUND_QUEUES * BOUND_JOBS // 2, f"only {disk} jobs were on the disk")
    sid = arena.memory["session"]
    assert isinstance(sid, bytes)
    begun = time.monotonic()
    answers = await arena.dialogue([b"SESSION %b\r\n" % sid, b"SESSION CLOSE\r\n"])
    arena.expect(answers[-1].startswith(b"200 OK"), f"SESSION CLOSE: {answers}")
    while queues := await asyncio.to_thread(left):
        if time.monotonic() > begun + arena.seconds:
            arena.fail(f"{len(queues)} queues of the session are left")
            return
        await asyncio.sleep(LOOK_S)
    arena.note(f"gone after {time.monotonic() - begun:.1f} s")


async def put_copied(arena: Arena) -> None:
    """Put 100,000 jobs, nearly all on the disk."""
    job = f"copied 0 {BOUND_SIZE}\r\n".encode() + bytes(BOUND_SIZE)
    await arena.insist([f"PUTS {BOUND_AT_ONCE}\r\n".encode() + job * BOUND_AT_ONCE]
                       * (BOUND_QUEUES * BOUND_JOBS // BOUND_AT_ONCE))


async def copies(arena: Arena) -> None:
    """Fetch the whole state, and send one that is damaged at its end, so that nothing changes."""

    def copy() -> None:
        with Wire(arena.server(), arena.seconds) as wire:
            snapshot = wire.exactly(int(wire.say("SNAPSHOT").split()[2]))
            answer = wire.say(f"CLONE {len(snapshot)}", snapshot[:-DAMAGED] + bytes(DAMAGED))
            arena.expect(answer == "500 Invalid Snapshot", f"CLONE: {answer}")
            arena.note(f"{len(snapshot) >> 20} MiB")

    await asyncio.to_thread(copy)


ATTACKS = (
    Attack("paged-removals", "2,000 jobs of 200 KB on the disk are purged, deleted, kicked, and become due", removals,
           prepare=put_paged, config={"limits": {"hot_bytes": 8 << 20}}, seconds=10,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
    Attack("paged-peeks", "PEEK COUNT 10000 of jobs of 10 KB on the disk without end, on 4 connections", peeks,
           prepare=put_shown, config={"limits": {"hot_bytes": 8 << 20}}, bounds=Bounds(p50_ms=20, gap_s=1)),
    Attack("paged-bound", "a session ends that has queues with 100,000 jobs on the disk", bound_end, prepare=put_bound,
           config={"limits": {"hot_bytes": 8 << 20}}, seconds=20, bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=300)),
    Attack("paged-copies", "SNAPSHOT of 100,000 jobs on the disk, and CLONE of it with a damaged end", copies,
           prepare=put_copied, config={"limits": {"hot_bytes": 8 << 20}}, seconds=30,
           bounds=Bounds(p50_ms=20, gap_s=2, growth_mb=400)),
)
