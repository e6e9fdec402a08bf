"""sockpqd compared with RabbitMQ and NATS, where they are installed: one command for docs/BENCHMARKS.md's tables.

    make build/generator
    python -m bench.compare [--rounds 3] [--seconds 2] [--into docs/BENCHMARKS.md]

Three nodes of each system and the generator share this machine, one system at a time, and one node of ours alone, which
shows what replication costs, next to those that are not replicated. In each round each system runs all workloads, and
every other round the systems are in the opposite order. `--record` appends the runs to a file, from which `--from`
makes the tables again without measuring.
"""

from __future__ import annotations

import datetime
import json
import os
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import click

from bench.compare.generator import GeneratorError
from bench.compare.systems import SYSTEMS, running
from bench.compare.table import lines
from bench.compare.workloads import WORKLOADS
from bench.reports.recording import machine
from bench.reports.tables import replaced

SYNCS = 200

FILE = click.Path(dir_okay=False, path_type=Path)


@click.command()
@click.option("--generator", default=Path("build/generator"), show_default=True,
              type=click.Path(dir_okay=False, path_type=Path), help="`make build/generator` builds it.")
@click.option("--systems", default=",".join(SYSTEMS), show_default=True,
              help="Those that are not installed are left out.")
@click.option("--workloads", default=",".join(WORKLOADS), show_default=True)
@click.option("--rounds", default=3, show_default=True, type=click.IntRange(1, 100))
@click.option("--seconds", default=2.0, show_default=True, type=click.FloatRange(0.1, 600), help="Of each run.")
@click.option("--warm", "warm_s", default=1.0, show_default=True, type=click.FloatRange(0.0, 60),
              help="Seconds before each of them.")
@click.option("--record", "record_to", type=FILE, help="Append the runs to this file.")
@click.option("--from", "recorded", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="Measure nothing, take the runs of this file.")
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path),
              help="A file with <!-- compare --> and <!-- /compare -->, between which the table is written.")
def main(
    generator: Path, systems: str, workloads: str, rounds: int, seconds: float, warm_s: float,
    record_to: Path | None, recorded: Path | None, into: Path | None,
) -> None:
    """Compare the systems, and print the tables or write them into a document."""
    if recorded is not None:
        kept = [json.loads(line) for line in recorded.read_text().splitlines()]
    elif not generator.exists():
        raise click.UsageError(f"there is no {generator}: `make build/generator` builds it")
    else:
        kept = []
        for run in measure(
            generator, _chosen(systems, SYSTEMS), _chosen(workloads, WORKLOADS), rounds, seconds, warm_s,
        ):
            kept.append(run)
            if record_to is not None:       # at once: what comes later may fail
                with record_to.open("a") as file:
                    file.write(json.dumps(run) + "\n")
    text = "\n".join(lines(arranged(kept), kept[-1]["surroundings"] if kept else {})) + "\n"
    if into is None:
        click.echo(text)
    else:
        into.write_text(replaced(into.read_text(), {"compare": text}))


def _chosen(names: str, known: Iterable[str]) -> list[str]:
    chosen = names.split(",")
    for name in chosen:
        if name not in known:
            raise click.UsageError(f"there is no {name}, but {', '.join(known)}")
    return chosen


def measure(
    generator: Path, systems: list[str], workloads: list[str], rounds: int, seconds: float, warm_s: float,
) -> Iterator[dict[str, Any]]:
    """Yield all runs, each with its workload, system and environment. A run that fails is reported and left out."""
    present = [name for name in systems if SYSTEMS[name].installed()]
    versions = (f"{SYSTEMS[name].title} {SYSTEMS[name].version()}" for name in present if SYSTEMS[name].nodes > 1)
    surroundings = {
        "on": datetime.datetime.now(datetime.UTC).date().isoformat(), **machine(),
        "versions": ", ".join(versions), "disk": f"{1 / sync_s():,.0f} syncs a second",
        "runs": f"{rounds} of {seconds:g} s each",
    }
    for number in range(rounds):
        for name in present if number % 2 == 0 else reversed(present):
            with running(name, generator, seconds, warm_s) as load:
                for workload in workloads:
                    try:
                        result = load.run(WORKLOADS[workload])
                    except GeneratorError as error:
                        click.echo(f"left out: {error}", err=True)
                        continue
                    click.echo(f"{name} {workload} {result['rate']:,.0f}/s {result['srv_us_op']:,.1f} µs", err=True)
                    # the generator names a protocol, which several systems speak
                    yield {**result, "system": name, "workload": workload, "surroundings": surroundings}


def arranged(kept: Iterable[dict[str, Any]]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return these runs by workload, in the order of WORKLOADS, and by system."""
    runs: dict[str, dict[str, list[dict[str, Any]]]] = {workload: {} for workload in WORKLOADS}
    for run in kept:
        runs[run["workload"]].setdefault(run["system"], []).append(run)
    return {workload: of for workload, of in runs.items() if of}


def sync_s() -> float:
    """The median time of a small write and its sync in the folder for temporary files, where the nodes' data are."""
    times = []
    with tempfile.TemporaryFile() as file:
        file.write(bytes(4096 * SYNCS))
        os.fsync(file.fileno())
        for place in range(SYNCS):
            begun = time.perf_counter()
            os.pwrite(file.fileno(), b"x" * 512, 4096 * place)
            os.fdatasync(file.fileno())
            times.append(time.perf_counter() - begun)
    return sorted(times)[SYNCS // 2]


if __name__ == "__main__":
    main()
