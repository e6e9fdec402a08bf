"""Tail latency: the longest waits of clients while something else happens in the cluster.

    python -m bench.load tails [--rate 2000] [--connections 100] [--waiting 500000] [--seconds 10]

Many connections send PUTs at a steady rate (`--rate 0`: as fast as they are answered) through these phases: nothing
else happens; the leader writes a snapshot; a follower is away and catches up; a follower returns with an empty disk;
another client puts jobs of 8 MiB. The 99th percentile should stay below 100 ms in each phase. It always starts a
cluster of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from time import perf_counter, perf_counter_ns

import click
import uvloop

from bench.load.running import LoadRun, load
from bench.load_generator.closed_loop import Cycle, Shift, work
from bench.load_generator.disturbances import BEFORE_S, DISTURBANCES, Disturbance, Scene
from bench.load_generator.figures import Curve, LoadFigures, Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.open_loop import LATE, Pacer
from bench.load_generator.prefill import fill
from bench.load_generator.runs import measure_load
from bench.load_generator.target import CONNECTIONS, HOT_BYTES, SIZE
from bench.load_generator.wire import wires_to

WAITING, PUT = "tails-waiting", "tails"
PRIORITIES = 1000
WINDOW_S = 0.5


@load("tails")
@click.option("--rate", default=2000.0, show_default=True, type=click.FloatRange(0, 100_000), help="PUTs per second.")
@CONNECTIONS
@click.option("--waiting", default=500_000, show_default=True, type=click.IntRange(0), help="Jobs that wait.")
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 3600), help="A phase at least.")
@click.option("--away", default=5.0, show_default=True, type=click.FloatRange(0, 3600), help="Seconds of the follower.")
@SIZE
@HOT_BYTES
@click.option("--only", type=click.Choice(list(DISTURBANCES)), multiple=True, help="Only these phases.")
def tails(
    running: LoadRun, rate: float, connections: int, waiting: int, seconds: float, away: float, size: int,
    only: tuple[str, ...],
) -> None:
    """Measure the latency of PUTs during disturbances."""
    if waiting:
        running.console.print(f"putting {waiting:,} jobs first")
        uvloop.run(fill(running.target.leader(), Jobs([WAITING], size, priorities=PRIORITIES), waiting))
    for phase, disturbance in DISTURBANCES.items():
        if only and phase not in only:
            continue
        running.cluster.wait_until_level()
        running.console.print(phase)
        puts = Puts(Jobs([PUT], size), rate, connections)
        row, curve = one_phase(running, puts, disturbance, seconds, away)
        running.result.rows.append({"phase": phase, **row})
        running.result.curves[phase] = curve
        running.result.note_problems({f"{phase}: {told}": count for told, count in puts.figures.problems.items()})


class Puts:
    """PUTs over many connections until it is stopped."""

    def __init__(self, jobs: Jobs, rate: float, connections: int) -> None:
        """Make a load of `rate` PUTs per second, or as fast as they are answered (0)."""
        self.figures = LoadFigures()
        self._jobs = jobs
        self._rate = rate
        self._connections = connections

    async def run_while(self, leader: str, other: Awaitable[float]) -> tuple[float, float]:
        """Run until `other` has completed; returns the seconds of the load, and the result of `other`."""
        async with wires_to(leader, self._connections) as wires:
            if self._rate:
                pacer = Pacer(wires, self._jobs, self._rate, self.figures)
                running, stop = asyncio.ensure_future(pacer.run()), pacer.stop
            else:
                shift = Shift()
                cycles = [Cycle(wire, ("PUT",), self._jobs, self.figures, shift) for wire in wires]
                running, stop = asyncio.ensure_future(work(cycles, [shift], self.figures, None)), shift.stop
            try:
                took_s = await other
            finally:
                stop()
                elapsed_s = await running
            return elapsed_s, took_s


def one_phase(
    running: LoadRun, puts: Puts, disturbance: Disturbance, seconds: float, away: float
) -> tuple[Row, Curve]:
    """Measure the PUTs during a disturbance; returns their figures, and their latencies over time."""
    cluster, leader = running.cluster, running.target.leader()
    follower = next(name for name in cluster.names if cluster.direct(name) != leader)
    scene = Scene(cluster, leader, follower, away, max(seconds - BEFORE_S, 0.1))
    begun = perf_counter_ns()
    putting = puts.run_while(leader, disturbed(scene, disturbance, seconds))
    done, took_s = measure_load(running.target, puts.figures, putting)
    row: Row = {
        "PUTs": len(puts.figures.latencies_us["PUT"]), "per_second": done.per_second("PUT"),
        **puts.figures.latency("PUT"), "late_p99_ms": puts.figures.latency(LATE)["p99_ms"],
        "took_s": took_s, "generator_load": done.generator_load,
        "cpu_us_per_PUT": done.cpu_us_per(len(puts.figures.latencies_us["PUT"])),
    }
    return row, puts.figures.windows("PUT", begun, WINDOW_S)


async def disturbed(scene: Scene, disturbance: Disturbance, seconds: float) -> float:
    """Cause the disturbance a while after the start of a phase of at least `seconds`; returns how long it took."""
    begun = perf_counter()
    await asyncio.sleep(min(BEFORE_S, seconds))
    started = perf_counter()
    await disturbance(scene)
    ended = perf_counter()
    await asyncio.sleep(max(begun + seconds - ended, 0))
    return ended - started
