"""All worker programs in turn, as a table: CPU for a task, tasks per second, how long short tasks wait for a long one.

    python -m bench.workers.compare [--tasks 2000] [--rounds 3] [--into FILE]

The processor time of a worker counts with all its processes, but without its broker. Brokers are started here, as
durable as they can be: three nodes of sockpqd, one Redis that syncs each write, a quorum queue on three nodes of
RabbitMQ. A broker whose program is missing is left out, and with it the workers that need it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

import click

from bench.celery.brokers import BrokerError, rabbitmq, redis
from bench.reports.recording import surroundings
from bench.reports.tables import replaced
from bench.workers.__main__ import long_and_short, rate
from bench.workers.running import RunError, WorkerRun
from bench.workers.systems import SYSTEMS
from devcluster.cluster import LocalCluster

BROKERS = "sockpqd", "redis", "rabbitmq"


class Candidate(NamedTuple):
    """A worker program with a broker; `share`: of the tasks, for what is slow. `options`: added to its command."""

    name: str
    system: str
    broker: Literal["sockpqd", "redis", "rabbitmq"]
    share: float = 1.0
    options: tuple[str, ...] = ()


CANDIDATES = (
    Candidate("pqworker", "pqworker", "sockpqd"),
    Candidate("pqworker --prefetch 50", "pqworker", "sockpqd", options=("--prefetch", "50")),
    Candidate("Celery, RabbitMQ quorum queue", "celery", "rabbitmq"),
    Candidate("Celery, Redis", "celery", "redis"),
    Candidate("dramatiq, Redis", "dramatiq", "redis"),
    Candidate("huey, Redis", "huey", "redis"),
    Candidate("RQ, Redis", "rq", "redis", share=0.03),      # a process for each task
)
TASKS = "noop", "millisecond"
Figures = dict[tuple[str, str], list[float]]        # by candidate and by what was measured


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.option("--tasks", type=click.IntRange(100), default=2000, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=3, show_default=True)
@click.option("--children", type=click.IntRange(1, 100), default=2, show_default=True)
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A file with <!-- workers --> and <!-- /workers -->, between which the table is written.")
def main(tasks: int, rounds: int, children: int, into: Path | None) -> None:
    """Measure the worker programs, and print the table or write it into a document."""
    figures: Figures = defaultdict(list)
    try:
        with ExitStack() as stack:
            places = {broker: place for broker in BROKERS if (place := started(broker, stack)) is not None}
            chosen = [(one, places[one.broker]) for one in CANDIDATES if one.broker in places]
            for number in range(rounds):
                for task in TASKS:
                    for one, place in chosen:
                        count = max(int(tasks * one.share), 20)
                        _measure(figures, one, place, children, task, partial(rate, task=task, tasks=count))
                if number == 0:
                    for one, place in chosen:
                        _measure(figures, one, place, children, "long", long_and_short)
    finally:                    # also what was measured before Ctrl-C
        text = "\n".join([*table(figures), "", surroundings(rounds=rounds, tasks=tasks)]) + "\n"
        if into is None:
            print(text, end="")
        else:
            into.write_text(replaced(into.read_text(), {"workers": text}))


def started(broker: str, stack: ExitStack) -> str | None:
    """Start a broker until the stack is closed; returns its place, None if that is not possible here."""
    if broker == "sockpqd":
        return ",".join(stack.enter_context(LocalCluster(3)).servers)
    try:
        return stack.enter_context(redis(synced=True) if broker == "redis" else rabbitmq(3))
    except (BrokerError, FileNotFoundError) as error:
        print(f"{broker} was not started: {error}", file=sys.stderr)
        return None


def _measure(
    figures: Figures, one: Candidate, place: str, children: int, what: str,
    measure: Callable[[WorkerRun], dict[str, object]],
) -> None:
    system = SYSTEMS[one.system]
    system = system._replace(command=(*system.command, *one.options))
    with tempfile.TemporaryDirectory() as folder:
        try:
            with WorkerRun(system, place, Path(folder), children) as run:
                told = measure(run)
        except RunError as error:
            print(f"{one.name}, {what}: {error}", file=sys.stderr)
            return
    print(f"{one.name}, {what}: {told}", file=sys.stderr, flush=True)
    for key, value in told.items():
        if isinstance(value, int | float):
            figures[one.name, f"{what} {key}"].append(value)


def table(figures: Figures) -> list[str]:
    """Return medians, with the lowest and the highest; the ratios compare the medians with the first program's."""
    names = list(dict.fromkeys(name for name, _ in figures))
    lines = [
        "| | CPU µs, no-op | x | tasks/s, no-op | CPU µs, 1 ms | x | tasks/s, 1 ms | longest wait of a short one |",
        "|---|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name in names:
        cells = [name]
        for task in TASKS:
            cpu = figures.get((name, f"{task} cpu_us"), [])
            first = figures.get((names[0], f"{task} cpu_us"), [])
            ratio = f"{statistics.median(cpu) / statistics.median(first):.1f}" if cpu and first else "-"
            cells += [_spread(cpu), ratio, _spread(figures.get((name, f"{task} per_second"), []))]
        waited = figures.get((name, "long longest_wait_s"))
        cells.append(f"{waited[0]:.1f} s" if waited else "-")
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _spread(values: list[float]) -> str:
    if not values:
        return "-"
    middle = f"{statistics.median(values):,.0f}"
    return middle if len(values) == 1 else f"{middle} ({min(values):,.0f} to {max(values):,.0f})"


if __name__ == "__main__":
    main()
