"""Does throughput depend on the number of waiting jobs?

    python -m bench.depth [--depths 10000,1000000,5000000] [--jobs 50000] [--hot-bytes 100000000] [--priorities 1]

At each depth, with that many jobs waiting in ten queues with random priorities, jobs are put, and then as many are
taken and finished. The rates at all depths should agree within 20%. A million jobs of 100 bytes need about 0.4 GB of
memory on each node, unless the nodes keep jobs beyond --hot-bytes on their disks.
"""

from __future__ import annotations

from pathlib import Path

import click
import uvloop
from rich.console import Console

from bench.load_generator.console import make_console
from bench.load_generator.figures import Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.runs import run, warm_up
from bench.load_generator.target import SIZE, Target, target, target_options
from bench.reports.recording import Result, finish

QUEUES = [f"depth-{number}" for number in range(10)]
FILL_JOBS = 100_000     # jobs put between two lines about the progress


def parse_depths(context: click.Context, option: click.Parameter, value: str) -> list[int]:
    """Parse increasing numbers, separated by commas."""
    try:
        depths = [int(depth) for depth in value.split(",")]
    except ValueError:
        raise click.BadParameter("expected numbers separated by commas") from None
    if depths != sorted(set(depths)) or depths[0] < 0:
        raise click.BadParameter("each must be greater than the one before")
    return depths


@click.command()
@target_options
@click.option("--depths", default="10000,1000000,5000000", show_default=True, callback=parse_depths,
              help="How many jobs wait.")
@click.option("--jobs", default=50_000, show_default=True, type=click.IntRange(1), help="Put, and taken, at each.")
@click.option("--connections", default=100, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--hot-bytes", default=0, show_default=True, type=click.IntRange(0),
              help="Jobs beyond it are on the disk (limits.hot_bytes of the nodes started); 0: all in memory.")
@click.option("--priorities", default=1000, show_default=True, type=click.IntRange(1), help="Of the jobs of a queue.")
@SIZE
def main(
    servers: str | None, nodes: int, record_to: Path | None,
    depths: list[int], jobs: int, connections: int, hot_bytes: int, priorities: int, size: int,
) -> None:
    """Measure rates and latencies with many jobs waiting."""
    console = make_console()
    with target(servers, nodes, console, {"limits": {"hot_bytes": hot_bytes}}) as measured:
        made = Jobs(QUEUES, size, priorities=priorities)
        measured.purge(QUEUES)
        result = Result("depth")
        warm_up(measured, made, jobs)
        for depth in depths:
            deepen(measured, made, depth, console)
            result.rows.append(measure(measured, made, jobs, connections, result))
        for name in ("PUT_per_second", "GET_DONE_per_second"):
            rates = [float(rate) for row in result.rows if isinstance(rate := row[name], float)]
            result.summary[f"{name}_least_to_first"] = min(rates) / rates[0]
        measured.leave(QUEUES)
        finish(console, result, measured, record_to)


def deepen(measured: Target, jobs: Jobs, depth: int, console: Console) -> None:
    """Put jobs until `depth` of them wait."""
    while (waiting := measured.waiting(QUEUES)) < depth:
        uvloop.run(fill(measured.leader(), jobs, min(FILL_JOBS, depth - waiting)))
        console.print(f"{measured.waiting(QUEUES):,} jobs wait")


def measure(measured: Target, jobs: Jobs, count: int, connections: int, result: Result) -> Row:
    """Measure at the present depth, which is the same afterwards."""
    measured.settle()
    waiting, memory = measured.waiting(QUEUES), measured.leader_memory_bytes()
    put = run(measured, jobs, [(connections, ("PUT",))], times=count)
    measured.settle()
    taken = run(measured, jobs, [(connections, ("GET", "DONE"))], times=count)
    row: Row = {
        "waiting": waiting, "PUT_per_second": put.per_second("PUT"), "PUT_cpu_us": put.cpu_us_per(count),
        "GET_DONE_per_second": taken.per_second("DONE"), "GET_DONE_cpu_us": taken.cpu_us_per(count),
    }
    for step, figures in (("PUT", put.figures), ("GET", taken.figures), ("DONE", taken.figures)):
        row[f"{step}_p99_ms"] = figures.latency(step)["p99_ms"]
    row["generator_load"] = max(put.generator_load, taken.generator_load)
    row["leader_memory_MB"] = None if memory is None else memory / 1e6
    result.note_problems(put.figures.problems)
    result.note_problems(taken.figures.problems)
    return row


if __name__ == "__main__":
    main()
