"""FIND over many jobs: the duration of a whole search, and the latency of PUTs during it.

    python -m bench.load find [--waiting 1000000] [--searchers 1] [--rate 500] [--hot-bytes 100000000]

Half of the waiting jobs have a header. Connections send PUTs at a steady rate through these phases: nobody searches;
clients search for a key that no job has, from the first job to the last one; the same for a header, which has to be
compared; for a header at a follower. The median of the PUTs should be the same in each.
"""

from __future__ import annotations

import asyncio
from itertools import count
from time import perf_counter

import click
import uvloop

from bench.load.running import LoadRun, load
from bench.load.tails import Puts
from bench.load_generator.figures import Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.runs import measure_load
from bench.load_generator.target import CONNECTIONS, HOT_BYTES, NODES, SIZE
from bench.load_generator.wire import LIST, ask, wires_to
from devcluster.node import NodeError

WAITING, PUT = "find-waiting", "find-put"
HEADERS = b"task: send\n"
PHASES = {"nothing": "", "key": "KEY none*", "header": "HEAD task other", "header at a follower": "HEAD task other"}
BUSY = b"503 Busy"          # too many search: asked again
BUSY_S = 0.01


class HeaderJobs(Jobs):
    """Return jobs of which every other one begins with a header."""

    def __init__(self, queue: str, size: int) -> None:
        """Make jobs of `size` bytes besides the header."""
        super().__init__([queue], size)
        for number in range(0, len(self.lines), 2):
            length = len(HEADERS) + len(self.bodies[number])
            self.lines[number] = f"{queue} 0 {length} HEAD {len(HEADERS)}\r\n".encode()
            self.bodies[number] = HEADERS + self.bodies[number]


class Searchers:
    """Clients that search from the first job to the last one until they are stopped."""

    def __init__(self, wanted: str) -> None:
        self.calls = 0
        self.took_s: list[float] = []       # each whole search
        self._wanted = wanted

    async def search(self, server: str, clients: int, seconds: float) -> float:
        """Search for this long, then to the end; returns the mean duration of a whole search in seconds."""
        if not self._wanted:
            await asyncio.sleep(seconds)
            return 0.0
        until = perf_counter() + seconds
        await asyncio.gather(*(self._search(server, until) for _ in range(clients)))
        return sum(self.took_s) / len(self.took_s)

    async def _search(self, server: str, until: float) -> None:
        async with wires_to(server) as (wire,):
            while perf_counter() < until:
                begun, cursor = perf_counter(), b""
                for _ in count():
                    answer = await ask(wire, f"FIND {WAITING} {self._wanted}".encode() + cursor + b"\r\n", LIST)
                    if answer.line == BUSY:
                        await asyncio.sleep(BUSY_S)
                        continue
                    if not answer.good:
                        raise NodeError(f"FIND: {answer.line!r}")
                    self.calls += 1
                    _, mark, word = answer.line.partition(b" NEXT ")
                    if not mark:
                        break
                    cursor = b" FROM " + word
                self.took_s.append(perf_counter() - begun)


@load("find", NODES)
@click.option("--waiting", default=1_000_000, show_default=True, type=click.IntRange(1), help="Jobs that wait.")
@click.option("--searchers", default=1, show_default=True, type=click.IntRange(1, 100), help="That search at a time.")
@click.option("--rate", default=500.0, show_default=True, type=click.FloatRange(1, 100_000), help="PUTs per second.")
@CONNECTIONS
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 3600), help="A phase at least.")
@SIZE
@HOT_BYTES
@click.option("--only", type=click.Choice(list(PHASES)), multiple=True, help="Only these phases.")
def find(
    running: LoadRun, waiting: int, searchers: int, rate: float, connections: int, seconds: float, size: int,
    only: tuple[str, ...],
) -> None:
    """Measure searches, and the latency of PUTs during them."""
    running.console.print(f"putting {waiting:,} jobs first")
    uvloop.run(fill(running.target.leader(), HeaderJobs(WAITING, size), waiting))
    for phase, wanted in PHASES.items():
        if only and phase not in only:
            continue
        running.target.settle()
        running.console.print(phase)
        puts = Puts(Jobs([PUT], size), rate, connections)
        running.result.rows.append({"phase": phase, **one_phase(running, puts, phase, wanted, searchers, seconds)})
        running.result.note_problems({f"{phase}: {text}": times for text, times in puts.figures.problems.items()})


def one_phase(
    running: LoadRun, puts: Puts, phase: str, wanted: str, searchers: int, seconds: float,
) -> Row:
    """Measure PUTs while other clients search; returns the figures of the PUTs and of the searches."""
    cluster, leader = running.cluster, running.target.leader()
    others = [address for name in cluster.names if (address := cluster.direct(name)) != leader]
    searching = Searchers(wanted)
    asked = others[0] if phase.endswith("follower") and others else leader
    done, took_s = measure_load(
        running.target, puts.figures, puts.run_while(leader, searching.search(asked, searchers, seconds)))
    return {
        "PUTs": len(puts.figures.latencies_us["PUT"]), **puts.figures.latency("PUT"), "searches": len(searching.took_s),
        "calls": searching.calls, "search_s": took_s, "generator_load": done.generator_load,
    }
