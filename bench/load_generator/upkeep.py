"""The costs of many waiting jobs besides rates: memory, disk, a snapshot, the start of a node that was killed.

Only of a cluster that was started for it. The small client puts one job after the other, each when the last one is
answered: it feels every pause of the leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic, perf_counter

import uvloop

from bench.load_generator.figures import Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.target import Target, memory_bytes
from bench.load_generator.wire import LINE, Wire, ask, wires_to
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError

PAUSE_S = 0.005         # of the small client between two jobs
START_S = 900.0         # a node needs less to be level again
BLOCK_BYTES = 512       # the unit of st_blocks


async def beside(leader: str, queue: str, work: Callable[[], Awaitable[None]]) -> list[float]:
    """Do the work while putting jobs into the queue; returns the duration of each in seconds."""
    took: list[float] = []
    async with wires_to(leader) as (wire,):
        putting = asyncio.create_task(_put_on(wire, queue, took))
        try:
            await work()
        finally:
            putting.cancel()
            await asyncio.gather(putting, return_exceptions=True)
    if not putting.cancelled() and (error := putting.exception()) is not None:
        raise error
    return took


async def _put_on(wire: Wire, queue: str, took: list[float]) -> None:
    """Put jobs, one at a time, until cancelled. Raises NodeError if one is refused."""
    while True:
        begun = perf_counter()
        answer = await ask(wire, f"PUT {queue} 0 5\r\nsmall".encode(), LINE)
        took.append(perf_counter() - begun)
        if not answer.good:
            raise NodeError(f"a small job is refused: {answer.line!r}")
        await asyncio.sleep(PAUSE_S)


def put_many(measured: Target, jobs: Jobs, count: int, small: str) -> tuple[float, float]:
    """Put `count` jobs, and single ones into the queue `small`.

    Returns the seconds for all, and the milliseconds for the slowest single one.
    """
    leader, begun = measured.leader(), perf_counter()
    took = uvloop.run(beside(leader, small, lambda: fill(leader, jobs, count)))
    return perf_counter() - begun, 1000 * max(took, default=0.0)


def look(cluster: LocalCluster) -> Row:
    """Memory and disk of the node that needs most."""
    pids = [pid for name in cluster.names if (pid := cluster.pid(name)) is not None]
    return {
        "memory_MB": max(map(memory_bytes, pids)) / 1e6,
        "disk_MB": max(_disk_bytes(cluster.data_dir(name)) for name in cluster.names) / 1e6,
    }


def _disk_bytes(folder: Path) -> int:
    used = 0
    for path in folder.rglob("*"):
        try:
            used += path.stat().st_blocks * BLOCK_BYTES
        except FileNotFoundError:       # the node has removed it
            continue
    return used


def snapshot(measured: Target, small: str) -> Row:
    """Let the leader write a snapshot."""
    leader, took_s = measured.leader(), 0.0

    async def write() -> None:
        nonlocal took_s
        async with wires_to(leader) as (wire,):
            begun = perf_counter()
            answer = await ask(wire, b"CLUSTER SNAPSHOT\r\n", LINE)
            took_s = perf_counter() - begun
        if not answer.good:
            raise NodeError(f"no snapshot is written: {answer.line!r}")

    took = uvloop.run(beside(leader, small, write))
    return {"snapshot_s": took_s, "snapshot_small_PUT_max_ms": 1000 * max(took, default=0.0)}


def start(cluster: LocalCluster) -> Row:
    """Kill a node, one that does not lead if there is one, start it, and wait until all are level."""
    leader = cluster.wait_for_leader()
    killed = next((name for name in cluster.names if name != leader), leader)
    cluster.kill(killed)
    begun = monotonic()
    cluster.restart(killed, wait=False)
    cluster.wait_until_level(START_S)
    return {"start_s": monotonic() - begun}
