"""Producers put jobs while workers take them with GETB and finish them, each sending one command at a time.

    python -m bench.load handover [--producers 50] [--workers 50] [--jobs 100000]
    python -m bench.load fan [--many 1000] [--few 10] [--jobs 50000]

The time from the first PUT to the last DONE is measured. `fan` compares a thousand
producers and workers with ten of each: many should reach at least 80% of the throughput of few.
"""

from __future__ import annotations

from statistics import median_low

import click

from bench.load.running import LoadRun, load
from bench.load_generator.figures import Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.runs import Run
from bench.load_generator.target import NODES, SERVERS, SIZE

WORKER = ("GETB", "DONE")


@load("handover", SERVERS, NODES)
@click.option("--producers", default=50, show_default=True, type=click.IntRange(1, 5000))
@click.option("--workers", default=50, show_default=True, type=click.IntRange(1, 5000), help="GETB and DONE.")
@click.option("--jobs", default=100_000, show_default=True, type=click.IntRange(1))
@SIZE
def handover(running: LoadRun, producers: int, workers: int, jobs: int, size: int) -> None:
    """Measure jobs per second from producers to workers."""
    made = Jobs(["handover"], size, stamped=True)
    running.warm_up(made, jobs)
    done = hand_over(running, made, producers, workers, jobs)
    running.result.rows = [done.row(step) for step in ("PUT", "GETB", "DONE", "delivery")]
    running.result.summary = {
        "jobs_per_second": done.per_second("DONE"), "seconds": done.seconds, "cpu_us_per_job": done.cpu_us_per(jobs),
        "generator_load": done.generator_load,
    }


@load("fan", SERVERS, NODES)
@click.option("--many", default=1000, show_default=True, type=click.IntRange(1, 4000), help="Producers, and workers.")
@click.option("--few", default=10, show_default=True, type=click.IntRange(1, 4000))
@click.option("--jobs", default=50_000, show_default=True, type=click.IntRange(1), help="For each measurement.")
@SIZE
@click.option("--pipeline", default=1, show_default=True, type=click.IntRange(1, 1000),
              help="In flight on each connection of the few.")
@click.option("--repeat", default=3, show_default=True, type=click.IntRange(1, 100), help="Both in turn, this often.")
def fan(running: LoadRun, many: int, few: int, jobs: int, size: int, pipeline: int, repeat: int) -> None:
    """Compare the throughput of many clients with the throughput of few."""
    made = Jobs(["fan"], size, stamped=True)
    running.warm_up(made, jobs)
    rates: dict[int, list[float]] = {few: [], many: []}
    for _ in range(repeat):
        for clients in (few, many):
            done = hand_over(running, made, clients, clients, jobs, pipeline if clients == few else 1)
            running.result.rows.append(hand_over_row(f"{clients:,} + {clients:,}", done))
            rates[clients].append(done.per_second("DONE"))
    running.result.summary = {"ratio": median_low(rates[many]) / median_low(rates[few])}


def hand_over(running: LoadRun, jobs: Jobs, producers: int, workers: int, count: int, pipeline: int = 1) -> Run:
    """Pass `count` jobs from producers to workers."""
    return running.run(jobs, [(producers, ("PUT",)), (workers, WORKER)], count, pipeline)


def hand_over_row(name: str, done: Run) -> Row:
    """The figures of a hand-over. "delivery" is the time from PUT to the worker, including the wait in the queue."""
    row: Row = {"clients": name, "jobs": done.figures.cycles - len(done.figures.latencies_us["PUT"]),
                "jobs_per_second": done.per_second("DONE")}
    for step in ("PUT", "DONE", "delivery"):
        latency = done.figures.latency(step, (50.0, 99.0))
        row.update({f"{step}_{name}": value for name, value in latency.items() if name != "max_ms"})
    return {**row, "cpu_us_per_job": done.cpu_us_per(len(done.figures.latencies_us["DONE"])),
            "generator_load": done.generator_load}
