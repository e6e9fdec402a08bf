"""A small load generator that counts only acknowledged commands, and measures the latency of every one.

    python -m bench.load put|getdone|mixed [--servers HOST:PORT,...] [--connections N] [--pipeline W] [--size BYTES]

`put` puts jobs; `getdone` takes and finishes jobs put before the clock starts; `mixed` puts, takes and finishes. Each
connection keeps `--pipeline` such cycles in flight. Without `--servers` a cluster of three nodes is started, which
shares the machine with the one process that generates the load: the figures are lower bounds then.
"""

from __future__ import annotations

from pathlib import Path

import click
import uvloop

from bench.load_generator.console import make_console
from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.runs import run
from bench.load_generator.target import SIZE, target, target_options
from bench.reports.recording import Result, finish

QUEUE = "load"
CYCLES = {"put": ("PUT",), "getdone": ("GET", "DONE"), "mixed": ("PUT", "GET", "DONE")}


@click.command()
@click.argument("workload", type=click.Choice(list(CYCLES)))
@target_options
@click.option("--connections", default=100, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--pipeline", default=1, show_default=True, type=click.IntRange(1, 10_000), help="In flight on each.")
@SIZE
@click.option("--seconds", default=10.0, show_default=True, type=click.FloatRange(0.1, 3600))
@click.option("--jobs", default=200_000, show_default=True, type=click.IntRange(1), help="Put before getdone begins.")
def main(
    workload: str, servers: str | None, nodes: int, record_to: Path | None,
    connections: int, pipeline: int, size: int, seconds: float, jobs: int,
) -> None:
    """Measure acknowledged commands per second and their latency."""
    console = make_console()
    with target(servers, nodes, console) as measured:
        made = Jobs([QUEUE], size)
        if workload == "getdone":
            missing = max(jobs - measured.waiting([QUEUE]), 0)
            console.print(f"putting {missing} jobs first")
            uvloop.run(fill(measured.leader(), made, missing))
        console.print(f"{workload}: {connections} connections x {pipeline} in flight, {size} bytes")
        done = run(measured, made, [(connections, CYCLES[workload])], seconds=seconds, pipeline=pipeline)
        figures = done.figures
        result = Result("load", [done.row(step) for step in CYCLES[workload]], {
            "cycles_per_second": figures.cycles / done.seconds, "commands_per_second": figures.commands / done.seconds,
            "seconds": done.seconds, "cpu_us_per_command": done.cpu_us_per(figures.commands),
            "generator_load": done.generator_load,
        })
        # an empty queue is not an error
        result.note_problems({told: count for told, count in figures.problems.items()
                              if not told.startswith("GET: 404")})
        finish(console, result, measured, record_to)


if __name__ == "__main__":
    main()
