"""Disturbances of a cluster under load, during which the latencies of its clients are measured."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from time import perf_counter

from bench.load_generator.wire import LINE, LIST, ask, wires_to
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError

BEFORE_S = 1.0          # load alone at the start of each phase
LEVEL_ENTRIES = 20      # under load, a follower at most this far behind has caught up
LEVEL_S = 120.0
LOOK_S = 0.1
LARGE_BYTES = 8 << 20
LARGE_TTL_S = 1         # they are never taken and must not fill the memory


@dataclass(frozen=True)
class Scene:
    """The parameters of a disturbance. `leader`: "host:port"; `away_s`: how long the follower is away; `large_s`: how
    long large jobs are put."""

    cluster: LocalCluster
    leader: str
    follower: str
    away_s: float
    large_s: float


Disturbance = Callable[[Scene], Awaitable[None]]


async def nothing(scene: Scene) -> None:
    ...


async def leader_snapshot(scene: Scene) -> None:
    """Make the leader write a snapshot of all jobs and cut its log."""
    await _ask(scene, b"CLUSTER SNAPSHOT\r\n")


async def follower_away(scene: Scene) -> None:
    """Kill a follower, restart it some seconds later, and wait until it has caught up."""
    await asyncio.to_thread(scene.cluster.kill, scene.follower)
    await asyncio.sleep(scene.away_s)
    await asyncio.to_thread(scene.cluster.restart, scene.follower, False)
    await wait_until_level(scene)


async def follower_emptied(scene: Scene) -> None:
    """Restart a follower with an empty data directory, so that the leader sends it a snapshot."""
    await asyncio.to_thread(scene.cluster.kill, scene.follower)
    await asyncio.to_thread(scene.cluster.wipe, scene.follower)
    await _ask(scene, b"CLUSTER SNAPSHOT\r\n")      # or the leader's log may be there from its beginning
    await asyncio.to_thread(scene.cluster.restart, scene.follower, False)
    await wait_until_level(scene)


async def large_jobs(scene: Scene) -> None:
    """Put jobs of 8 MiB from one other client, one after another."""
    until = perf_counter() + scene.large_s
    command = f"PUT large 0 {LARGE_BYTES} TTL {LARGE_TTL_S}\r\n".encode() + os.urandom(LARGE_BYTES)
    while perf_counter() < until:
        await _ask(scene, command)


DISTURBANCES: dict[str, Disturbance] = {
    "nothing": nothing,
    "snapshot of the leader": leader_snapshot,
    "follower away": follower_away,
    "follower emptied": follower_emptied,
    "jobs of 8 MiB": large_jobs,
}


async def wait_until_level(scene: Scene) -> None:
    """Wait until the follower has caught up. Raises NodeError."""
    until = perf_counter() + LEVEL_S
    async with wires_to(scene.leader) as (wire,):
        while perf_counter() < until:
            answer = await ask(wire, b"CLUSTER STATUS\r\n", LIST)
            if any(_level(line.decode().split(" "), scene.follower) for line in answer.data.split(b"\r\n")):
                return
            await asyncio.sleep(LOOK_S)
    raise NodeError(f"{scene.follower} has not caught up within {LEVEL_S:g} s")


def _level(words: list[str], name: str) -> bool:
    """Return whether this line of CLUSTER STATUS shows the node as a follower that has caught up."""
    return len(words) > 8 and words[1] == name and words[4] == "FOLLOWER" and words[8].isdecimal() \
        and int(words[8]) <= LEVEL_ENTRIES


async def _ask(scene: Scene, command: bytes) -> None:
    """Send a command on a new connection. Raises NodeError unless the answer is 200."""
    async with wires_to(scene.leader) as (wire,):
        answer = await ask(wire, command, LINE)
    if not answer.good:
        raise NodeError(f"{command[:40]!r} is answered {answer.line!r}")
