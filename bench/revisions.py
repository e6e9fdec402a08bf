"""Runs benchmarks of this tree and of another commit in turn, and compares every figure.

    python -m bench.revisions COMMIT [--rounds 5] [--at-most FIGURE=RATIO] -- bench.load latency --seconds 20
    python -m bench.revisions COMMIT --only cpu_us_per_command --into docs/BENCHMARKS.md \\
        -- bench.load put --connections 1 -- bench.load put --connections 100

The other commit is unpacked into a temporary folder and runs with the packages of this environment; its own benchmark
starts its own nodes. A ratio compares two consecutive runs, so a machine whose speed changes does not matter much;
the medians of them are printed, or written between <!-- revisions --> and <!-- /revisions -->.
"""

from __future__ import annotations

import datetime
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

from bench.reports.recording import machine
from bench.reports.tables import replaced

HERE = Path(__file__).resolve().parent.parent
# What these loads were in earlier commits: programs of their own.
PROGRAMS = {"handover": "mixed"} | {
    name: name for name in ("author", "fan", "depth", "latency", "quiet", "tails", "failover")
}
Pair = tuple[dict[str, float], dict[str, float]]        # the figures of both, by name


@click.command(context_settings={"ignore_unknown_options": True}, help=__doc__.split("\n", maxsplit=1)[0])
@click.argument("commit")
@click.argument("benchmarks", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Runs of each.")
@click.option("--only", metavar="FIGURES", help="These only, separated by commas.")
@click.option("--at-most", metavar="FIGURE=RATIO", help="End with 1 if this figure's ratio is greater.")
@click.option("--into", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="A file with such a place.")
def main(
    commit: str, benchmarks: tuple[str, ...], rounds: int, only: str | None, at_most: str | None, into: Path | None,
) -> None:
    """Run both in turn and print the medians."""
    each = separated(benchmarks)
    with tempfile.TemporaryDirectory(prefix="sockpqd-") as folder:
        there = Path(folder) / "tree"
        unpack(commit, there)
        pairs: list[list[Pair]] = [[] for _ in each]
        for _ in range(rounds):
            for benchmark, of in zip(each, pairs, strict=True):
                of.append((figures(there, benchmark, Path(folder)), figures(HERE, benchmark, Path(folder))))
    names = None if only is None else only.split(",")
    text = "\n\n".join(table(commit, benchmark, of, names) for benchmark, of in zip(each, pairs, strict=True)) + "\n"
    if into is None:
        click.echo(text, nl=False)
    else:
        surroundings = {"on": datetime.datetime.now(datetime.UTC).date().isoformat(), **machine(), "rounds": rounds}
        text += "\n" + ", ".join(f"{name} {value}" for name, value in surroundings.items()) + ".\n"
        into.write_text(replaced(into.read_text(), {"revisions": text}))
    if at_most:
        name, _, limit = at_most.rpartition("=")
        ratios = [new[name] / old[name] for old, new in pairs[0]]
        if statistics.median(ratios) > float(limit):
            click.echo(f"{name}: {statistics.median(ratios):.2f} of {commit} is more than {limit}", err=True)
            sys.exit(1)


def separated(words: tuple[str, ...]) -> list[tuple[str, ...]]:
    """Return the benchmarks, each with its options, between the words "--"."""
    each: list[tuple[str, ...]] = [()]
    for word in words:
        if word == "--":
            each.append(())
        else:
            each[-1] += (word,)
    return each


def table(commit: str, benchmark: tuple[str, ...], pairs: list[Pair], names: list[str] | None = None) -> str:
    """Return the medians of both and of their ratios, with the lowest and highest. `names`: the figures; None: all."""
    lines = [f"| {' '.join(benchmark)} | {commit} | here | ratio |\n|---|--:|--:|--:|"]
    for name in pairs[0][1]:
        values = [(old[name], new[name]) for old, new in pairs if old.get(name) and name in new]
        if values and (names is None or name in names):
            ratios = [new / old for old, new in values]
            old, new = (statistics.median(side) for side in zip(*values, strict=True))
            lines.append(f"| {name} | {old:,.1f} | {new:,.1f} | {statistics.median(ratios):.2f} "
                         f"({min(ratios):.2f} to {max(ratios):.2f}) |")
    return "\n".join(lines)


def unpack(commit: str, folder: Path) -> None:
    """Write the tree of a commit as files below this folder."""
    packed = subprocess.run(["git", "archive", commit], cwd=HERE, check=True, stdout=subprocess.PIPE).stdout
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)


def as_in(tree: Path, benchmark: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words that run a benchmark in this tree, where a load may still be a program of its own."""
    program, *words = benchmark
    before = PROGRAMS.get(words[0]) if program == "bench.load" and words else None
    return (f"bench.{before}", *words[1:]) if before and (tree / "bench" / f"{before}.py").exists() else benchmark


def figures(tree: Path, benchmark: tuple[str, ...], folder: Path) -> dict[str, float]:
    """Run the benchmark of a tree; returns all numbers that it records, by name."""
    recorded = folder / "recorded.jsonl"
    recorded.unlink(missing_ok=True)
    # In front of what is installed, for the nodes as well, whose environment this becomes.
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'client' / 'src'}"}
    words = [sys.executable, "-m", *as_in(tree, benchmark), "--record", str(recorded)]
    subprocess.run(words, cwd=tree, env=environment, check=True, stdout=subprocess.DEVNULL)
    return dict(_numbers(recorded))


def _numbers(recorded: Path) -> Iterator[tuple[str, float]]:
    result = json.loads(recorded.read_text().splitlines()[-1])
    for name, value in result["summary"].items():
        if isinstance(value, int | float):
            yield name, value
    for row in result["rows"]:
        first, *_ = row.values()
        for name, value in row.items():
            if isinstance(value, int | float):
                yield f"{first} {name}", value


if __name__ == "__main__":
    main()
