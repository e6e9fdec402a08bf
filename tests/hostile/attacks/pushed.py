"""The program `sockpq-http push` between the cluster and hostile receivers."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import tempfile
import time
from contextlib import AsyncExitStack
from pathlib import Path

from sockpq.aio import Client

from tests.hostile.arena import Arena
from tests.hostile.attack import MIB, Attack, Bounds
from tests.http.push import hostile
from tests.http.push.receivers import Request, answer, answer_bytes, receiver

QUEUES_OF_BAD = 40          # jobs in each hostile target's queue, at the beginning and again and again
EACH_S = 0.05               # between two jobs of the good target
LATE_S = 2.0                # in which one arrives
GROWTH_MIB = 64
START_S = 20.0

BAD = {
    "never": hostile.never, "trickle": hostile.trickle, "trickled_body": hostile.trickle_body,
    "continues": hostile.continues, "closes": hostile.raw(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nx"),
    "no_http": hostile.raw(b"SSH-2.0\r\n" * 1000), "headers": hostile.headers_without_end(b"x: y\r\n" * 1000),
    "header": hostile.headers_without_end(b"x" * 10_000), "body": hostile.body_without_end(b"\r\n"),
    "lie": hostile.body_without_end(b"Content-Length: 9999999999999\r\n\r\n"),
    "busy": answer(429, {"Retry-After": "99999999999"}), "broken": answer(500, body=b"x" * 100_000),
}


async def receivers(arena: Arena) -> None:
    """Receivers of all hostile kinds, each with jobs without end; a good one gets its jobs meanwhile."""
    late_s: list[float] = []

    async def take(request: Request, writer: asyncio.StreamWriter) -> None:
        late_s.append(time.time() - float(request.body))
        writer.write(answer_bytes(200))

    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="push-")))
        urls = {name: (await stack.enter_async_context(receiver(behave))).url for name, behave in BAD.items()}
        urls["good"] = (await stack.enter_async_context(receiver(take))).url
        config = folder / "push.toml"
        config.write_text("".join(
            f'[targets.{name}]\nqueues = ["push_{name}"]\nurl = "{url}"\nallow = ["127.0.0.1"]\ntimeout_s = 2\n'
            f"connect_timeout_s = 2\npause_max_s = 1\nresult = {'false' if name == 'good' else 'true'}\n"
            for name, url in urls.items()
        ))
        client = await stack.enter_async_context(Client(arena.cluster.servers, tls=arena.cluster.ca))
        program = subprocess.Popen(
            [sys.executable, "-m", "sockpq_http.main", "push", str(config)], stderr=subprocess.DEVNULL,
            env={**os.environ, "SOCKPQ_SERVERS": ",".join(arena.cluster.servers)},
        )
        try:
            await client.put("push_good", f"{time.time()}")
            async with asyncio.timeout(START_S):
                while not late_s:
                    await asyncio.sleep(EACH_S)
            late_s.clear()
            began_mib = most_mib = _rss_mib(program)
            put, until, again = 0, time.monotonic() + arena.seconds, 0.0
            while time.monotonic() < until:
                if time.monotonic() > again:
                    again = time.monotonic() + 1.0
                    for name in BAD:
                        await client.put_many(f"push_{name}", [b"x"] * QUEUES_OF_BAD, ttl=5)
                await client.put("push_good", f"{time.time()}")
                put += 1
                most_mib = max(most_mib, _rss_mib(program))
                await asyncio.sleep(EACH_S)
            await asyncio.sleep(LATE_S)
            arena.expect(len(late_s) >= put, f"{len(late_s)} of {put} jobs for the good receiver arrived")
            arena.expect(max(late_s, default=LATE_S) < LATE_S, f"one of them arrived after {max(late_s):.1f} s")
            arena.expect(program.poll() is None, "the program has ended")
            arena.expect(most_mib < began_mib + GROWTH_MIB, f"the program grew from {began_mib} to {most_mib} MiB")
            arena.note(f"{most_mib} MiB, {max(late_s, default=0.0) * 1000:.0f} ms")
        finally:
            program.kill()
            await asyncio.to_thread(program.wait)


def _rss_mib(program: subprocess.Popen[bytes]) -> int:
    return int(Path(f"/proc/{program.pid}/statm").read_text().split()[1]) * 4096 // MIB


ATTACKS = (
    Attack("push-receivers", "receivers of 12 hostile kinds get jobs without end from sockpq-http push", receivers,
           bounds=Bounds(p50_ms=20, gap_s=1, growth_mb=100)),
)
