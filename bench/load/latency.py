"""Latency under light load: the time from a job's PUT until a waiting worker has it.

    python -m bench.load latency [--rate 100] [--seconds 30] [--workers 10]

PUTs are sent at the given rate, whether or not earlier ones have been answered. The time of a step starts when its
command is sent; the delay of the generator itself is reported as a separate step.
"""

from __future__ import annotations

import asyncio

import click

from bench.load.running import LoadRun, load
from bench.load_generator.closed_loop import Cycle, Shift
from bench.load_generator.figures import LoadFigures
from bench.load_generator.jobs import Jobs
from bench.load_generator.open_loop import LATE, Pacer
from bench.load_generator.runs import measure_load
from bench.load_generator.target import NODES, SERVERS, SIZE
from bench.load_generator.wire import wires_to

QUEUE = "latency"
SETTLE_S = 0.2      # until the workers wait
FINISH_S = 30.0     # for the last jobs, on a busy machine
POLL_S = 0.02


@load("latency", SERVERS, NODES)
@click.option("--rate", default=100.0, show_default=True, type=click.FloatRange(0.1, 100_000), help="PUTs per second.")
@click.option("--seconds", default=30.0, show_default=True, type=click.FloatRange(0.1, 36_000))
@click.option("--workers", default=10, show_default=True, type=click.IntRange(1, 5000), help="GETB and DONE.")
@SIZE
def latency(running: LoadRun, rate: float, seconds: float, workers: int, size: int) -> None:
    """Measure the time from PUT to delivery, and the time of a PUT."""
    made, figures, result = Jobs([QUEUE], size, stamped=True), LoadFigures(), running.result
    running.empty(made.queues)
    delivering = deliver(running.target.leader(), made, figures, rate, seconds, workers)
    done = measure_load(running.target, figures, delivering)[0]
    steps = ("PUT", "delivery", "DONE", LATE)
    result.rows = [done.row(step) for step in steps]
    result.summary = {"seconds": done.seconds, "cpu_us_per_job": done.cpu_us_per(len(figures.latencies_us["PUT"])),
                      "generator_load": done.generator_load}
    result.curves = {step: figures.distribution(step) for step in steps}
    result.note_problems(figures.problems)


async def deliver(
    leader: str, jobs: Jobs, figures: LoadFigures, rate: float, seconds: float, workers: int
) -> tuple[float, None]:
    """Put jobs at this rate while workers wait for them; returns the elapsed seconds."""
    async with wires_to(leader) as producer, wires_to(leader, workers) as waiting:
        shift = Shift()
        for wire in waiting:
            Cycle(wire, ("GETB", "DONE"), jobs, figures, shift).start()
        await asyncio.sleep(SETTLE_S)
        elapsed_s = await Pacer(producer, jobs, rate, figures).run(seconds)
        await _finished(figures)
        return elapsed_s, None


async def _finished(figures: LoadFigures) -> None:
    """Wait until every job that was put is done."""
    loop = asyncio.get_running_loop()
    until = loop.time() + FINISH_S
    while len(figures.latencies_us["DONE"]) < len(figures.latencies_us["PUT"]) and loop.time() < until:
        await asyncio.sleep(POLL_S)
