"""Compares recorded runs of sockpqd and RabbitMQ, measured in one sitting, as tables in Markdown.

    python -m bench.reports.others bench/results/others/*.jsonl [--into docs/BENCHMARKS.md]

Each line of a file is one run, a JSON object: `tag` (the system: sockpq, rabbit), `work` (a key of WORKLOADS), `rate`
(per second), `srv_us_op` (CPU of all server processes per operation, microseconds), `dlv_us` (p50, p99, .. from put to
delivery), `gap` (failover: longest time without an answer, seconds), `rss_10s` (memory: of each server process, MB).
The median of several runs is used.
"""

from __future__ import annotations

import json
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click

from bench.reports.tables import replaced

Run = dict[str, Any]


class Aim(NamedTuple):
    """A workload and our aims: the ratio to RabbitMQ's rate, and CPU time in microseconds."""

    name: str
    ratio: float
    cpu_us: float


WORKLOADS = {
    "produce:1": Aim("PUT, 1 connection", 1.6, 500),
    "produce:10": Aim("PUT, 10 connections", 2, 110),
    "produce:100": Aim("PUT, 100 connections", 3.5, 30),
    "produce:1000": Aim("PUT, 1,000 connections", 4, 30),
    "produce:100:1000": Aim("PUT, 100 connections, 1,000 bytes", 3, 40),
    "pipelined": Aim("PUT pipelined, 10 x 100 in flight", 3, 10),
    "consume:1:1": Aim("GETB + DONE, 1 worker", 0.8, 900),
    "consume:10:1": Aim("GETB + DONE, 10 workers", 1.5, 160),
    "consume:100:1": Aim("GETB + DONE, 100 workers", 2.5, 60),
    "consume:10:100": Aim("GETB .. COUNT 100 + DONE, 10 workers", 3, 12),
    "pc": Aim("50 producers + 50 workers", 2.5, 90),
}


@click.command()
@click.argument("recorded", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with such a place.")
def main(recorded: tuple[Path, ...], into: Path | None) -> None:
    """Print the table, or write it into a document, between <!-- others --> and <!-- /others -->."""
    runs = [json.loads(line) for path in recorded for line in path.read_text().splitlines()]
    text = "\n".join(lines(runs)) + "\n"
    if into is None:
        click.echo(text)
    else:
        into.write_text(replaced(into.read_text(), {"others": text}))


def lines(runs: list[Run]) -> Iterator[str]:
    """The lines of the tables."""
    found: dict[tuple[str, str], list[Run]] = defaultdict(list)
    for run in runs:
        found[run["work"], run["tag"]].append(run)
    yield "| workload | RabbitMQ | sockpqd | ratio | aim | CPU µs RabbitMQ | CPU µs sockpqd | ratio | aim |"
    yield "|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for work, aim in WORKLOADS.items():
        other, ours = found.get((work, "rabbit")), found.get((work, "sockpq"))
        if other and ours:
            rates = _median(other, _rate), _median(ours, _rate)
            cpu = _median(other, _cpu), _median(ours, _cpu)
            ratio = rates[1] / rates[0]
            yield (f"| {aim.name} | {rates[0]:,.0f}/s | {rates[1]:,.0f}/s | **{ratio:.2f}** | {aim.ratio:g} "
                   f"| {cpu[0]:,.1f} | {cpu[1]:,.1f} | {cpu[1] / cpu[0]:.2f} | {aim.cpu_us:g} µs |")
    yield ""
    yield "| | RabbitMQ | sockpqd |"
    yield "|---|--:|--:|"
    for name, work, told in _REST:
        other, ours = found.get((work, "rabbit")), found.get((work, "sockpq"))
        if other and ours:
            yield f"| {name} | {told(other)} | {told(ours)} |"


def _median(runs: list[Run], value: Callable[[Run], float]) -> float:
    return statistics.median(map(value, runs))


def _rate(run: Run) -> float:
    return float(run["rate"])


def _cpu(run: Run) -> float:
    return float(run["srv_us_op"])


def _delivery(runs: list[Run]) -> str:
    p50, p99 = _median(runs, lambda run: run["dlv_us"][0]), _median(runs, lambda run: run["dlv_us"][1])
    return f"{p50 / 1000:.2f} / {p99 / 1000:.2f} ms"


def _gap(runs: list[Run]) -> str:
    return f"{_median(runs, lambda run: run['gap']):.2f} s (worst {max(run['gap'] for run in runs):.2f})"


def _memory(runs: list[Run]) -> str:
    return f"{_median(runs, lambda run: max(run['rss_10s'])):,.0f} MB"


_REST: tuple[tuple[str, str, Callable[[list[Run]], str]], ...] = (
    ("put to delivery to a waiting worker at 100/s, p50 / p99", "latency", _delivery),
    ("leader killed, longest gap, median", "failover", _gap),
    ("memory of the largest process with 1,000,000 waiting jobs", "memory", _memory),
)


if __name__ == "__main__":
    main()
