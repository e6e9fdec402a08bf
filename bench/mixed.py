"""Producers and workers at the same time, each sending one command at a time.

    python -m bench.mixed [--producers 50] [--workers 50] [--jobs 100000]

The time from the first PUT to the last DONE is measured.
"""

from __future__ import annotations

from pathlib import Path

import click

from bench.fan import hand_over
from bench.load_generator.console import make_console
from bench.load_generator.jobs import Jobs
from bench.load_generator.runs import warm_up
from bench.load_generator.target import SIZE, target, target_options
from bench.reports.recording import Result, finish

QUEUE = "mixed"


@click.command()
@target_options
@click.option("--producers", default=50, show_default=True, type=click.IntRange(1, 5000))
@click.option("--workers", default=50, show_default=True, type=click.IntRange(1, 5000), help="GETB and DONE.")
@click.option("--jobs", default=100_000, show_default=True, type=click.IntRange(1))
@SIZE
def main(
    servers: str | None, nodes: int, record_to: Path | None, producers: int, workers: int, jobs: int, size: int
) -> None:
    """Measure jobs per second from producers to workers."""
    console = make_console()
    with target(servers, nodes, console) as measured:
        made = Jobs([QUEUE], size, stamped=True)
        measured.purge(made.queues)
        warm_up(measured, made, jobs)
        done = hand_over(measured, made, producers, workers, jobs)
        result = Result("mixed", [done.row(step) for step in ("PUT", "GETB", "DONE", "delivery")])
        result.summary = {
            "jobs_per_second": done.per_second("DONE"), "seconds": done.seconds,
            "cpu_us_per_job": done.cpu_us_per(jobs), "generator_load": done.generator_load,
        }
        result.note_problems(done.figures.problems)
        measured.leave(made.queues)
        finish(console, result, measured, record_to)


if __name__ == "__main__":
    main()
