"""Rates, latencies, memory, disk, snapshots and the start of a node, by the number of waiting jobs.

    python -m bench.load depth [--depths 10000,1000000,5000000] [--jobs 50000] [--hot-bytes 100000000] [--priorities 1]

At each depth, with that many jobs waiting in ten queues with random priorities, jobs are put, and then as many are
taken and finished. The rates at all depths should agree within 20%. Then, in a cluster started for it, the leader
writes a snapshot, and a node is killed and started; a small client puts one job after the other while the snapshot
is written, and while the queues are filled. A million jobs of 100 bytes need about 0.4 GB of memory on each node,
unless the nodes keep jobs beyond --hot-bytes on their disks.
"""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import click

from bench.load.running import LoadRun, load
from bench.load_generator import upkeep
from bench.load_generator.figures import Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.target import CONNECTIONS, HOT_BYTES, NODES, SERVERS, SIZE, Target
from bench.reports.recording import heading, written
from devcluster.node import NodeError

QUEUES = [f"depth-{number}" for number in range(10)]
SMALL = "depth-small"
FILL_JOBS = 100_000     # jobs put between two looks at the clock
TOLD_S = 60.0           # between two lines about the progress


def parse_depths(context: click.Context, option: click.Parameter, value: str) -> list[int]:
    """Parse increasing numbers, separated by commas."""
    try:
        depths = [int(depth) for depth in value.split(",")]
    except ValueError:
        raise click.BadParameter("expected numbers separated by commas") from None
    if depths != sorted(set(depths)) or depths[0] < 0:
        raise click.BadParameter("each must be greater than the one before")
    return depths


@load("depth", SERVERS, NODES)
@click.option("--depths", default="10000,1000000,5000000", show_default=True, callback=parse_depths,
              help="How many jobs wait.")
@click.option("--jobs", default=50_000, show_default=True, type=click.IntRange(1), help="Put, and taken, at each.")
@CONNECTIONS
@HOT_BYTES
@click.option("--priorities", default=1000, show_default=True, type=click.IntRange(1), help="Of the jobs of a queue.")
@SIZE
@click.option("--directory", type=click.Path(file_okay=False, exists=True, path_type=Path),
              help="Where the nodes that are started have their data; without, where the system keeps temporary files.")
def depth(
    running: LoadRun, depths: list[int], jobs: int, connections: int, priorities: int, size: int
) -> None:
    """Measure a cluster with many jobs waiting."""
    made, result = Jobs(QUEUES, size, priorities=priorities), running.result
    running.empty([SMALL])
    running.warm_up(made, jobs)
    for waiting in depths:
        filled = deepen(running, made, waiting)
        result.rows.append({**measure(running, made, jobs, connections), **filled, **stand(running.target)})
        # at once: the next depth may take long
        running.console.print(", ".join(f"{heading(name)} {written(value)}" for name, value in result.rows[-1].items()),
                              markup=False)
    for name in ("PUT_per_second", "GET_DONE_per_second"):
        rates = [float(rate) for row in result.rows if isinstance(rate := row[name], float)]
        result.summary[f"{name}_least_to_first"] = min(rates) / rates[0]


def deepen(running: LoadRun, jobs: Jobs, waiting_jobs: int) -> Row:
    """Put jobs until this many of them wait, even if the leader changes; returns the result."""
    measured, console = running.target, running.console
    total, took_s, longest_ms, reported_at, cpu_us = 0, 0.0, 0.0, monotonic(), measured.cpu_us()
    while (waiting := measured.waiting(QUEUES)) < waiting_jobs:
        count = min(FILL_JOBS, waiting_jobs - waiting)
        try:
            filled_s, small_ms = upkeep.put_many(measured, jobs, count, SMALL)
        except (NodeError, ConnectionError) as error:
            if measured.cluster is None:
                raise
            running.result.note_problems({f"filling was interrupted: {error}": 1})
            console.print(f"interrupted: {error}", markup=False)
            measured.cluster.wait_for_leader()
            continue
        total, took_s, longest_ms = total + count, took_s + filled_s, max(longest_ms, small_ms)
        if monotonic() - reported_at >= TOLD_S:
            reported_at = monotonic()
            console.print(f"{measured.waiting(QUEUES):,} jobs wait; {total / took_s:,.0f} were put per second")
    if not total:
        return {}
    measured.settle()
    used_us = measured.cpu_us_since(cpu_us)
    return {"fill_per_second": total / took_s, "fill_cpu_us": None if used_us is None else used_us / total,
            "fill_small_PUT_max_ms": longest_ms}


def measure(running: LoadRun, jobs: Jobs, count: int, connections: int) -> Row:
    """Measure rates and latencies at the current depth, which is the same afterwards."""
    measured = running.target
    measured.settle()
    waiting = measured.waiting(QUEUES)
    put = running.run(jobs, [(connections, ("PUT",))], count)
    measured.settle()
    taken = running.run(jobs, [(connections, ("GET", "DONE"))], count)
    row: Row = {
        "waiting": waiting, "PUT_per_second": put.per_second("PUT"), "PUT_cpu_us": put.cpu_us_per(count),
        "GET_DONE_per_second": taken.per_second("DONE"), "GET_DONE_cpu_us": taken.cpu_us_per(count),
    }
    for step, figures in (("PUT", put.figures), ("GET", taken.figures), ("DONE", taken.figures)):
        row[f"{step}_p99_ms"] = figures.latency(step)["p99_ms"]
    row["generator_load"] = max(put.generator_load, taken.generator_load)
    return row


def stand(measured: Target) -> Row:
    """Measure the resources that the waiting jobs need, in a cluster started for it."""
    cluster = measured.cluster
    if cluster is None:
        return {}
    measured.settle()
    needs = upkeep.look(cluster)
    return {**needs, **upkeep.snapshot(measured, SMALL), **upkeep.start(cluster)}
