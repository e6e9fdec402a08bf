"""Prefill: puts the jobs that are to wait when a benchmark begins, many at once with PUTS."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from bench.load_generator.jobs import Jobs
from bench.load_generator.wire import LIST, Wire, ask, wires_to
from devcluster.node import NodeError

CHUNK_JOBS = 1000
CHUNK_BYTES = 4 << 20       # data in one PUTS, of which the server accepts 16 MiB
BUSY = b"503 Busy"          # no room at the moment, as when the disk is slow: the jobs are put again
BUSY_S, BUSY_TRIES = 0.2, 150
WIRES = 4       # each has one PUTS in flight, so that the leader never waits for us


async def fill(leader: str, jobs: Jobs, count: int) -> None:
    """Put `count` jobs. Raises NodeError if one is refused, and OSError if the connection is lost."""
    chunk = max(min(CHUNK_JOBS, CHUNK_BYTES // max(max(map(len, jobs.bodies)), 1)), 1)
    chunks = [chunk] * (count // chunk) + ([count % chunk] if count % chunk else [])
    todo = iter(chunks)
    async with wires_to(leader, min(WIRES, max(len(chunks), 1))) as wires:
        await asyncio.gather(*(_fill(wire, jobs, todo) for wire in wires))


async def _fill(wire: Wire, jobs: Jobs, chunks: Iterator[int]) -> None:
    for count in chunks:
        puts = jobs.puts(count)
        for _ in range(BUSY_TRIES):
            answer = await ask(wire, puts, LIST)
            lines = [answer.line, *answer.data.split(b"\r\n")[:-1]]
            if {*lines[-count:]} != {BUSY}:
                break
            await asyncio.sleep(BUSY_S)
        refused = next((line for line in lines if not line.startswith(b"200 OK")), None)
        if refused is not None:
            raise NodeError(f"the server does not take the jobs: {refused.decode('ascii', 'replace')}")
