"""Tasks that Celery publishes and executes per second, and the worker's CPU for one that does nothing.

    python -m bench.celery [--brokers sockpqd ..] [--tasks 1000] [--rounds 5] [--children 2] [--into FILE]

Each round measures all brokers, one after another; the medians are printed as Markdown. One process publishes the
tasks, one by one, or with `publish_batch` by the hundred. Tasks are acknowledged late, results ignored; the worker has
a prefork pool. Redis and RabbitMQ of Debian (`redis-server`, `rabbitmq-server`) are started here like sockpqd; a broker
whose program is missing is left out.
"""

from __future__ import annotations

import shutil
import signal
import statistics
import sys
import tempfile
from collections import defaultdict
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import click

from bench.celery.brokers import BATCHED, BROKERS, RABBITMQ, BrokerError
from bench.reports.recording import surroundings
from bench.reports.tables import replaced
from bench.workers.__main__ import rate
from bench.workers.running import RunError, WorkerRun
from bench.workers.systems import SYSTEMS

NEEDED: dict[str, str | Path] = {
    "sockpqd": Path(sys.executable).with_name("sockpqd"), "Redis": "redis-server",
    "RabbitMQ": RABBITMQ / "rabbitmq-server",
}


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.option("--brokers", multiple=True, default=("",), help="Only those whose names begin so; may be repeated.")
@click.option("--tasks", type=click.IntRange(10), default=1000, show_default=True)
@click.option("--rounds", type=click.IntRange(1), default=5, show_default=True)
@click.option("--children", type=click.IntRange(1, 100), default=2, show_default=True)
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A file with <!-- celery --> and <!-- /celery -->, between which the table is written.")
def main(brokers: tuple[str, ...], tasks: int, rounds: int, children: int, into: Path | None) -> None:
    """Measure the brokers in turn, and print the table or write it into a document."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)       # what was started is ended
    found: dict[str, list[dict[str, Any]]] = defaultdict(list)
    try:
        measure(found, brokers, tasks, rounds, children)
    finally:                # also what was measured before Ctrl-C
        text = "\n".join([*table(found), "", surroundings(rounds=rounds, tasks=tasks)]) + "\n"
        if into is None:
            print(text, end="")
        else:
            into.write_text(replaced(into.read_text(), {"celery": text}))


def measure(
    found: dict[str, list[dict[str, Any]]], brokers: tuple[str, ...], tasks: int, rounds: int, children: int
) -> None:
    """Add the results of each round."""
    with ExitStack() as stack:
        places = {}
        for name, start in BROKERS.items():
            if name.startswith(brokers) and shutil.which(NEEDED[name.partition(" ")[0].rstrip(",")]):
                try:
                    places[name] = stack.enter_context(start())
                except BrokerError as error:
                    print(f"{name} was not started: {error}", file=sys.stderr)
        for number in range(rounds):
            for name, place in places.items():
                try:
                    found[name].append(measured(name, place, tasks, children))
                except RunError as error:
                    print(f"{name}: {error}", file=sys.stderr)
                    continue
                print(f"round {number + 1}, {name}: {found[name][-1]}", file=sys.stderr, flush=True)


def measured(broker: str, place: str, tasks: int, children: int) -> dict[str, Any]:
    """Run once: publish all tasks, then process them; return the figures."""
    system = SYSTEMS["celery"]
    if broker.endswith(BATCHED):
        system = system._replace(
            app=f"{system.app}from sockpq_kombu.batch import publish_batch\n", batch="publish_batch()",
        )
    with tempfile.TemporaryDirectory() as folder, WorkerRun(system, place, Path(folder), children) as run:
        return rate(run, "noop", tasks)


def table(found: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return the lines of the table: medians, with the lowest and the highest value."""
    lines = ["| | publish/s | execute/s | worker CPU µs for a task |", "|---|--:|--:|--:|"]
    for name, runs in found.items():
        if not runs:            # its first one failed
            continue
        cells = []
        for key in ("put_per_second", "per_second", "cpu_us"):
            values = [run[key] for run in runs]
            cells.append(f"{statistics.median(values):,.0f} ({min(values):,.0f} to {max(values):,.0f})")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
