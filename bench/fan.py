"""Compares a thousand producers and workers with ten of each: many should not slow each other down.

    python -m bench.fan [--many 1000] [--few 10] [--jobs 50000]

Producers put jobs while workers take them with GETB and finish them, each sending one command at a time. The time from
the first PUT to the last DONE is measured. Many clients should reach at least 80% of the throughput of few.
"""

from __future__ import annotations

from pathlib import Path
from statistics import median_low

import click

from bench.load_generator.console import make_console
from bench.load_generator.figures import Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.runs import Run, run, warm_up
from bench.load_generator.target import SIZE, Target, target, target_options
from bench.reports.recording import Result, finish

QUEUE = "fan"
WORKER = ("GETB", "DONE")


@click.command()
@target_options
@click.option("--many", default=1000, show_default=True, type=click.IntRange(1, 4000), help="Producers, and workers.")
@click.option("--few", default=10, show_default=True, type=click.IntRange(1, 4000))
@click.option("--jobs", default=50_000, show_default=True, type=click.IntRange(1), help="For each measurement.")
@SIZE
@click.option("--pipeline", default=1, show_default=True, type=click.IntRange(1, 1000),
              help="In flight on each connection of the few.")
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(1, 100), help="Both in turn, this often.")
def main(
    servers: str | None, nodes: int, record_to: Path | None,
    many: int, few: int, jobs: int, size: int, pipeline: int, repeat: int,
) -> None:
    """Compare the throughput of many clients with the throughput of few."""
    console = make_console()
    with target(servers, nodes, console) as measured:
        made = Jobs([QUEUE], size, stamped=True)
        measured.purge(made.queues)
        warm_up(measured, made, jobs)
        result = Result("fan")
        rates: dict[int, list[float]] = {few: [], many: []}
        for _ in range(repeat):
            for clients in (few, many):
                done = hand_over(measured, made, clients, clients, jobs, pipeline if clients == few else 1)
                result.rows.append(hand_over_row(f"{clients:,} + {clients:,}", done))
                result.note_problems(done.figures.problems)
                rates[clients].append(done.per_second("DONE"))
        result.summary = {"ratio": median_low(rates[many]) / median_low(rates[few])}
        measured.leave(made.queues)
        finish(console, result, measured, record_to)


def hand_over(measured: Target, jobs: Jobs, producers: int, workers: int, count: int, pipeline: int = 1) -> Run:
    """Pass `count` jobs from producers to workers."""
    return run(measured, jobs, [(producers, ("PUT",)), (workers, WORKER)], times=count, pipeline=pipeline)


def hand_over_row(name: str, done: Run) -> Row:
    """The figures of a hand-over. "delivery" is the time from PUT to the worker, including the wait in the queue."""
    row: Row = {"clients": name, "jobs": done.figures.cycles - len(done.figures.latencies_us["PUT"]),
                "jobs_per_second": done.per_second("DONE")}
    for step in ("PUT", "DONE", "delivery"):
        latency = done.figures.latency(step, (50.0, 99.0))
        row.update({f"{step}_{name}": value for name, value in latency.items() if name != "max_ms"})
    return {**row, "cpu_us_per_job": done.cpu_us_per(len(done.figures.latencies_us["DONE"])),
            "generator_load": done.generator_load}


if __name__ == "__main__":
    main()
