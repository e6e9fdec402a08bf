"""Results of benchmarks: shown as a table, and recorded as a line of JSON with the conditions of the measurement."""

from __future__ import annotations

import datetime
import json
import os
import platform
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

import click
from rich.console import Console
from rich.table import Table
from sockpq.interpreter import how_built

from bench.load_generator.figures import Curve, Row, Value

COMMIT_VARIABLE = "SOCKPQD_BENCH_COMMIT"
NOT_OPTIONS = ("servers", "record_to", "before", "directory")        # places: they do not influence the figures


class Measured(Protocol):
    """The measured system: a cluster, or a part of the program alone. `cluster`: None if not started here."""

    @property
    def kind(self) -> str:
        """A description for the record."""

    @property
    def cluster(self) -> object | None:
        """The cluster that was started."""

    def version(self) -> str | None:
        """Return the version of sockpqd; None if it is not known."""


@dataclass
class Result:
    """The result of one run. `summary`: figures of the whole run; `curves`: points by name."""

    program: str
    rows: list[Row] = field(default_factory=list)
    summary: Row = field(default_factory=dict)
    curves: dict[str, Curve] = field(default_factory=dict)
    problems: dict[str, int] = field(default_factory=dict)      # unexpected answers

    def note_problems(self, problems: Mapping[str, int]) -> None:
        for problem, count in problems.items():
            self.problems[problem] = self.problems.get(problem, 0) + count


@dataclass(frozen=True)
class Record:
    """A recorded result. `at`: UTC, ISO 8601; `cluster`: the cluster under test; `machine`: see machine()."""

    program: str
    at: str
    version: str | None
    cluster: str
    machine: dict[str, Value]
    options: dict[str, Any]
    rows: list[Row]
    summary: Row
    curves: dict[str, Curve]
    problems: dict[str, int]


def machine() -> dict[str, Value]:
    """Return the machine of the load generator, and of local nodes, without its name."""
    return {
        "cores": os.cpu_count(), "cpu": _cpu_model(), "kernel": platform.release(),
        "python": f"{platform.python_version()} ({how_built()})",
    }


def surroundings(**more: object) -> str:
    """Return the conditions of a measurement as a sentence: day, commit, machine, and `more`."""
    words = {"": datetime.datetime.now(datetime.UTC).date().isoformat(), "commit": commit(), **machine(), **more}
    return "Measured on " + ", ".join(f"{name} {value}".strip() for name, value in words.items() if value) + "."


def commit() -> str | None:
    """Return the commit of this tree as bench.record gives it to its steps; None otherwise."""
    return os.environ.get(COMMIT_VARIABLE)


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        lines = []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")),
                platform.machine())


def finish(console: Console, result: Result, target: Measured, record_to: Path | None) -> None:
    """Show the result, record it, and end the program, with exit code 1 if there were problems."""
    show(console, result)
    if record_to is not None:
        record(result, target, record_to)
    sys.exit(1 if result.problems else 0)


def record(result: Result, target: Measured, path: Path) -> None:
    """Append the result to this file, with the options of the running program."""
    context = click.get_current_context()
    names = [option.name for option in context.command.params if option.name]     # always in the same order
    options = {name: list(value) if isinstance(value := context.params[name], tuple) else value
               for name in names if name not in NOT_OPTIONS}
    if target.cluster is None:
        options.pop("nodes", None)
    kept = Record(
        result.program, datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), target.version(),
        target.kind, {**machine(), "commit": commit()}, options, result.rows, result.summary, result.curves,
        result.problems,
    )
    with path.open("a") as file:
        file.write(json.dumps(_short(asdict(kept))) + "\n")


def _short(value: Any) -> Any:
    """Return the same value with floats rounded to four digits."""
    if isinstance(value, dict):
        return {name: _short(part) for name, part in value.items()}
    if isinstance(value, list):
        return [_short(part) for part in value]
    return round(value, 4) if isinstance(value, float) else value


def read(paths: Iterable[Path]) -> list[Record]:
    """Return the records of these files, oldest first; of several of one program with the same options only the last.

    Raises ValueError, with file and line, if a line is not a record.
    """
    latest: dict[str, Record] = {}
    for path in paths:
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            try:
                fields: dict[str, Any] = json.loads(line)
                record = Record(**fields)
            except (ValueError, TypeError) as error:
                raise ValueError(f"{path}:{number}: {error}") from None
            key = json.dumps([record.program, record.cluster, record.options], sort_keys=True)
            if key not in latest or latest[key].at <= record.at:
                latest.pop(key, None)
                latest[key] = record
    return sorted(latest.values(), key=lambda record: record.at)


def show(console: Console, result: Result) -> None:
    """Print the rows as a table, with the summary and the problems below."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for number, column in enumerate(columns(result.rows)):
        table.add_column(heading(column), justify="right" if number else "left")
    for row in result.rows:
        table.add_row(*(written(row.get(column)) for column in columns(result.rows)))
    console.print(table)
    if result.summary:
        console.print(told(result.summary), markup=False)
    for problem, count in result.problems.items():
        console.print(f"{count} x {problem}", style="yellow", markup=False)


def columns(rows: Sequence[Row]) -> list[str]:
    """Return the names of all figures with a value in any row, in the order of their appearance."""
    return list(dict.fromkeys(name for row in rows for name, value in row.items() if value is not None))


def heading(name: str) -> str:
    """Return the readable name of a figure: "p99.9 ms" for "p99_9_ms"."""
    words = name.replace("p99_9", "p99.9").split("_")
    return " ".join({"us": "µs", "cpu": "CPU"}.get(word, word) for word in words)


def told(summary: Row) -> str:
    """Format the summary as one line."""
    return ", ".join(f"{heading(name)}: {written(value)}" for name, value in summary.items() if value is not None)


def written(value: Value) -> str:
    """Format a figure, with the significant digits only."""
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.1f}" if abs(value) >= 100 else f"{value:.2f}"
    return f"{value:,}" if isinstance(value, int) else value
