"""Measures everything that docs/BENCHMARKS.md shows, on this machine, and writes tables and pictures into it.

    python -m bench.record                          # over an hour; the machine must have nothing else to do
    python -m bench.record --list
    python -m bench.record --only depth --only celery

Each step's tables are written when it has ended, so an interrupted program leaves what it has measured. What a step
needs and the machine lacks is reported, and its tables stay as they are. Exit code 1 if a step failed.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple

import click

from bench.reports.recording import COMMIT_VARIABLE, surroundings
from bench.reports.tables import replaced

RECORD = Path("bench/results/two-cores.jsonl")
DOCUMENT = Path("docs/BENCHMARKS.md")
PICTURES = Path("docs/benchmarks")
RABBITMQ = "/usr/lib/rabbitmq/bin/rabbitmq-server"
BEFORE = "ca21600e"                 # the commit before the work on speed: see the section "revisions"


RECORDING_RUNS = ("clients",)       # a file of single runs, from which it makes its table


class Step(NamedTuple):
    """One run. `section`: the place in the document. `programs` and `packages`: what the machine must have.

    `minutes`: an estimate. `kind`: "record": it records its figures, of which tables are made; "into": it writes into
    the document by itself; "lines": the lines that it prints are what is shown.
    """

    section: str
    words: tuple[str, ...]
    minutes: float
    kind: Literal["record", "into", "lines"] = "record"
    programs: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()


def _load(name: str, minutes: float, *options: str) -> Step:
    return Step(name, ("bench.load", name, *options), minutes)


def _events(name: str, minutes: float, *options: str) -> Step:
    return Step(f"events {name}", ("bench.events", name, *options), minutes)


STEPS = (
    _load("author", 1), _load("author", 1, "--nodes", "1"),
    _load("fan", 2), _load("fan", 2, "--pipeline", "100"),
    _load("depth", 8),
    _load("depth", 7, "--depths", "100000,10000000", "--hot-bytes", "100000000", "--priorities", "1"),
    _load("latency", 2, "--seconds", "60"),
    _load("failover", 4, "--trials", "40"), _load("failover", 3, "--trials", "20", "--freeze"),
    _load("handover", 1),
    _load("tails", 3), _load("tails", 3, "--rate", "0"),
    _events("cost", 2, "--seconds", "8"), _events("notify", 1, "--seconds", "4"), _events("delay", 1),
    Step("paged", ("tests.system.paged_storage",), 4, "lines"),
    Step("clients", ("bench.clients.table",), 8, "into",
         programs=("beanstalkd", "redis-server", "nats-server", RABBITMQ),
         packages=("greenstalk", "redis", "pika", "nats")),
    Step("workers", ("bench.workers.compare",), 8, "into", programs=("redis-server", RABBITMQ),
         packages=("celery", "redis", "rq", "dramatiq", "huey")),
    Step("celery", ("bench.celery", "--tasks", "800"), 8, "into", programs=("redis-server", RABBITMQ),
         packages=("celery", "redis")),
    Step("beanstalkd", ("bench.beanstalkd", "--seconds", "1"), 4, "into", programs=("beanstalkd",)),
    Step("turns", ("bench.turns",), 2, "lines"),
    Step("choices", ("bench.core.choices",), 1),
    Step("several_clusters", ("bench.several_clusters", "--nodes", "1"), 1),
    Step("several_clusters", ("bench.several_clusters",), 1),
    Step("cluster_maps", ("bench.core.cluster_maps",), 1),
    Step("compare", ("bench.compare",), 12, "into", programs=("nats-server",)),
    Step("revisions", ("bench.revisions", BEFORE, "--only", "cpu_us_per_command,commands_per_second",
                       "--", "bench.load", "put", "--connections", "1",
                       "--", "bench.load", "put", "--connections", "100",
                       "--", "bench.load", "put", "--connections", "10", "--pipeline", "100"), 7, "into"),
)


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.option("--only", "sections", multiple=True, type=click.Choice(sorted({step.section for step in STEPS})))
@click.option("--list", "listed", is_flag=True, help="Say what is measured and how long it takes, and do nothing.")
def main(sections: tuple[str, ...], listed: bool) -> None:
    """Run the steps, or those of some sections, and list what has failed."""
    steps = [step for step in STEPS if not sections or step.section in sections]
    if listed:
        for step in steps:
            lacking = f"; left out: {', '.join(missing(step))}" if list(missing(step)) else ""
            click.echo(f"{step.section:<14} {step.minutes:>4g} min  {' '.join(step.words)}{lacking}")
        return
    commit = subprocess.run(["git", "rev-parse", "--short=10", "HEAD"], check=True, stdout=subprocess.PIPE, text=True)
    os.environ[COMMIT_VARIABLE] = commit.stdout.strip()
    forget({step.section for step in steps if step.kind == "record"})
    failed = [step.section for step in steps if not done(step)]
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


def missing(step: Step) -> Iterator[str]:
    """Yield the programs and packages that the step needs and that are not here."""
    yield from (name for name in step.programs if shutil.which(name) is None)
    yield from (name for name in step.packages if find_spec(name) is None)


def done(step: Step) -> bool:
    """Run a step and write its tables; returns whether it went well. One that lacks something is left out."""
    lacking = list(missing(step))
    if lacking:
        click.echo(f"{step.section}: left out, as there is no {', '.join(lacking)}", err=True)
        return True
    click.echo(f"{time.strftime('%H:%M:%S')} {' '.join(step.words)}", err=True)
    with tempfile.TemporaryDirectory() as folder:
        ended = _python(with_places(step, Path(folder)), shown=step.kind != "lines")
    if ended.returncode:
        return False
    if step.kind == "lines":
        text = "".join(f"* {line}\n" for line in ended.stdout.splitlines())
        DOCUMENT.write_text(replaced(DOCUMENT.read_text(), {step.section: f"{text}\n{surroundings()}\n"}))
    elif step.kind == "record":
        made = ("bench.reports.tables", str(RECORD), "--into", str(DOCUMENT)), \
            ("bench.reports.plots", str(RECORD), "--to", str(PICTURES))
        return all(_python(words).returncode == 0 for words in made)
    return True


def with_places(step: Step, folder: Path) -> tuple[str, ...]:
    """Return the words with the files that the program writes; words after "--" are other programs'."""
    places: tuple[str, ...] = ()
    if step.kind == "record":
        places = ("--record", str(RECORD))
    elif step.kind == "into":
        places = ("--into", str(DOCUMENT))
    if step.section in RECORDING_RUNS:
        places += ("--record", str(folder / "runs.jsonl"))
    end = step.words.index("--") if "--" in step.words else len(step.words)
    return (*step.words[:end], *places, *step.words[end:])


def _python(words: tuple[str, ...], *, shown: bool = True) -> subprocess.CompletedProcess[str]:
    """Run a program of this tree. `shown`: its output is; otherwise it is returned."""
    return subprocess.run(
        [sys.executable, "-m", *words], check=False, text=True, stdout=None if shown else subprocess.PIPE,
    )


def forget(sections: set[str]) -> None:
    """Remove earlier records of these sections, which may have other options."""
    if RECORD.exists():
        lines = RECORD.read_text().splitlines(keepends=True)
        RECORD.write_text("".join(line for line in lines if json.loads(line)["program"] not in sections))


if __name__ == "__main__":
    main()
