"""The benchmark of sockPQd's author: the throughput, depending on the number of jobs.

    python -m bench.load author [--rounds 20] [--jobs 20000] [--queues 10] [--connections 100] [--nodes 3]

Some rounds put small jobs (20 to 40 bytes) with random priorities into random queues, then as many rounds take jobs
from random queues and finish them. The rate of each round is printed; it should stay the same. The author measured
6,115 PUTs and 3,225 pairs of GET and DONE per second, on one server of 2008 without replication; the number of his
clients is not known.
"""

from __future__ import annotations

import click

from bench.load.running import LoadRun, load
from bench.load_generator.figures import Curve, LoadFigures, Row
from bench.load_generator.jobs import Jobs
from bench.load_generator.runs import Run
from bench.load_generator.target import CONNECTIONS, NODES, SERVERS
from bench.reports.recording import written

SIZE, SIZE_MAX = 20, 40     # bytes, as in the author's test
PRIORITIES = 1000
PHASES = {"PUT": ("PUT",), "GET + DONE": ("GET", "DONE")}


@load("author", SERVERS, NODES)
@click.option("--rounds", default=20, show_default=True, type=click.IntRange(1, 1000))
@click.option("--jobs", default=20_000, show_default=True, type=click.IntRange(1), help="In each round.")
@click.option("--queues", default=10, show_default=True, type=click.IntRange(1, 1000))
@CONNECTIONS
def author(running: LoadRun, rounds: int, jobs: int, queues: int, connections: int) -> None:
    """Put jobs in rounds, then take and finish them in rounds, and print the rate of each round."""
    made, result = Jobs([f"author-{number}" for number in range(queues)], SIZE, SIZE_MAX, PRIORITIES), running.result
    running.warm_up(made, jobs)
    for phase, steps in PHASES.items():
        done = []
        for number in range(rounds):
            waiting = jobs * (number if phase == "PUT" else rounds - number)
            done.append(running.run(made, [(connections, steps)], jobs))
            rate, cpu = cycles_per_second(done[-1]), done[-1].cpu_us_per(jobs)
            running.console.print(
                f"{phase:10} with {waiting:9,} waiting: {rate:8,.0f} per second, CPU µs {written(cpu)}")
            result.curves.setdefault(phase, []).append([waiting, rate, cpu or 0.0])
        result.rows.append(phase_row(phase, steps, done, result.curves[phase]))


def cycles_per_second(done: Run) -> float:
    """Jobs put, or taken and finished, per second."""
    return done.figures.cycles / done.seconds


def phase_row(phase: str, steps: tuple[str, ...], done: list[Run], curve: Curve) -> Row:
    """The figures of all rounds of a phase. `curve`: for each round the waiting jobs, the rate and the nodes' CPU time.

    `last_to_first`: the ratio of the last round's rate to the first's.
    """
    rates = [rate for _, rate, _ in curve]
    jobs = sum(each.figures.cycles for each in done)
    cpu = [each.cpu_us for each in done if each.cpu_us is not None]
    figures = LoadFigures()
    for each in done:
        for step in steps:
            figures.latencies_us[step].extend(each.figures.latencies_us[step])
    return {
        "phase": phase, "jobs": jobs, "per_second": jobs / sum(each.seconds for each in done),
        "slowest_round": min(rates), "fastest_round": max(rates), "last_to_first": rates[-1] / rates[0],
        "cpu_us_per_job": sum(cpu) / jobs if len(cpu) == len(done) and jobs else None,
        "generator_load": max(each.generator_load for each in done), **figures.latency(steps[0], (50.0, 99.0)),
    }
