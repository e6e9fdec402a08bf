"""Simple loads that count only acknowledged commands, and measure the latency of every one.

    python -m bench.load put|getdone|mixed [--servers HOST:PORT,...] [--connections N] [--pipeline W] [--size BYTES]

`put` puts jobs; `getdone` takes and finishes jobs put before the clock starts; `mixed` puts, takes and finishes. Each
connection keeps `--pipeline` such cycles in flight. Without `--servers` a cluster of three nodes is started, which
shares the machine with the one process that generates the load: the figures are lower bounds then.
"""

from __future__ import annotations

import click
import uvloop

from bench.load.running import LoadRun, load
from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.runs import run
from bench.load_generator.target import CONNECTIONS, NODES, SERVERS, SIZE

QUEUE = "load"
CYCLES = {"put": ("PUT",), "getdone": ("GET", "DONE"), "mixed": ("PUT", "GET", "DONE")}


def rate(workload: str) -> click.Command:
    """The load that repeats one of the cycles."""
    steps = CYCLES[workload]

    @load(workload, SERVERS, NODES)
    @CONNECTIONS
    @click.option("--pipeline", default=1, show_default=True, type=click.IntRange(1, 10_000), help="In flight on each.")
    @SIZE
    @click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 3600))
    @click.option("--jobs", default=200_000, show_default=True, type=click.IntRange(1), help="Put first by getdone.")
    def measure(running: LoadRun, connections: int, pipeline: int, size: int, seconds: float, jobs: int) -> None:
        measured, console = running.target, running.console
        made = Jobs([QUEUE], size)
        if workload == "getdone":
            missing = max(jobs - measured.waiting([QUEUE]), 0)
            console.print(f"putting {missing} jobs first")
            uvloop.run(fill(measured.leader(), made, missing))
        console.print(f"{workload}: {connections} connections x {pipeline} in flight, {size} bytes")
        done = run(measured, made, [(connections, steps)], seconds=seconds, pipeline=pipeline)
        figures = done.figures
        running.result.rows = [done.row(step) for step in steps]
        running.result.summary = {
            "cycles_per_second": figures.cycles / done.seconds, "commands_per_second": figures.commands / done.seconds,
            "seconds": done.seconds, "cpu_us_per_command": done.cpu_us_per(figures.commands),
            "generator_load": done.generator_load,
        }
        # an empty queue is not an error
        running.result.note_problems({problem: count for problem, count in figures.problems.items()
                                      if not problem.startswith("GET: 404")})

    measure.help = f"Measure {' and '.join(steps)}: acknowledged commands per second and their latency."
    return measure


RATES = [rate(workload) for workload in CYCLES]
