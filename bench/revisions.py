"""One benchmark here and as it was at another commit, in turn: what became of every figure.

    python -m bench.revisions COMMIT [--rounds 5] [--at-most FIGURE=RATIO] -- bench.latency --seconds 20

The other commit is unpacked into a temporary folder and runs with the packages of this environment; its own benchmark
starts its own nodes. A ratio is that of two runs that followed one another, so a machine whose speed changes does not
matter much; what is printed is the median of them.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click

HERE = Path(__file__).resolve().parent.parent


@click.command(context_settings={"ignore_unknown_options": True}, help=__doc__.split("\n", maxsplit=1)[0])
@click.argument("commit")
@click.argument("benchmark", nargs=-1, required=True, type=click.UNPROCESSED)
@click.option("--rounds", default=5, show_default=True, type=click.IntRange(1, 100), help="Runs of each.")
@click.option("--at-most", metavar="FIGURE=RATIO", help="End with 1 if this figure's ratio is greater.")
def main(commit: str, benchmark: tuple[str, ...], rounds: int, at_most: str | None) -> None:
    """Run both in turn and print the medians."""
    with tempfile.TemporaryDirectory(prefix="sockpqd-") as folder:
        there = Path(folder) / "tree"
        unpack(commit, there)
        pairs = [
            (figures(there, benchmark, Path(folder)), figures(HERE, benchmark, Path(folder))) for _ in range(rounds)
        ]
    click.echo(f"| {' '.join(benchmark)} | {commit} | here | ratio |\n|---|--:|--:|--:|")
    ratios = {}
    for name in pairs[0][1]:
        values = [(old[name], new[name]) for old, new in pairs if old.get(name) and name in new]
        if values:
            ratios[name] = statistics.median(new / old for old, new in values)
            old, new = (statistics.median(side) for side in zip(*values, strict=True))
            click.echo(f"| {name} | {old:,.1f} | {new:,.1f} | {ratios[name]:.2f} |")
    if at_most:
        name, _, limit = at_most.rpartition("=")
        if ratios[name] > float(limit):
            click.echo(f"{name}: {ratios[name]:.2f} of {commit} is more than {limit}", err=True)
            sys.exit(1)


def unpack(commit: str, folder: Path) -> None:
    """The tree of a commit as files below this folder."""
    packed = subprocess.run(["git", "archive", commit], cwd=HERE, check=True, stdout=subprocess.PIPE).stdout
    folder.mkdir(parents=True)
    subprocess.run(["tar", "-x", "-C", str(folder)], input=packed, check=True)


def figures(tree: Path, benchmark: tuple[str, ...], folder: Path) -> dict[str, float]:
    """Run the benchmark of a tree; returns all numbers that it records, by name."""
    recorded = folder / "recorded.jsonl"
    recorded.unlink(missing_ok=True)
    # In front of what is installed, for the nodes as well, whose environment this becomes.
    environment = {**os.environ, "PYTHONPATH": f"{tree}:{tree / 'client' / 'src'}"}
    subprocess.run([sys.executable, "-m", *benchmark, "--record", str(recorded)], cwd=tree, env=environment,
                   check=True, stdout=subprocess.DEVNULL)
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
