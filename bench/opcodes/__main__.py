"""Instructions of Python that a node executes for a job, by function: a figure nearly without noise.

    python -m bench.opcodes PUT|GETDONE [--beside COMMIT] [--connections 100] [--jobs 4000] [--follower]

Three nodes are started; one of them, the leader or a follower, counts what its event loop executes while jobs are put,
or taken and finished. --beside COMMIT counts the same in the tree of that commit, and lists the functions that differ
most first. The node is twenty times slower meanwhile, so what happens once a second weighs more than it does otherwise:
use many jobs for many connections. It says nothing of what is written in C, of the kernel and of caches.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import click
import uvloop

from bench.load_generator.jobs import Jobs
from bench.load_generator.prefill import fill
from bench.load_generator.runs import run
from bench.load_generator.target import Target
from bench.revisions import HERE, unpack
from devcluster.cluster import LocalCluster
from devcluster.node import NodeError

NODE = Path(__file__).with_name("node.py")
QUEUE = "opcodes"
WARM_UP_JOBS = 2000
COUNTED_S, POLL_S = 120.0, 0.05     # how long a node may take to write what it has counted
STEPS = {"PUT": ("PUT",), "GETDONE": ("GET", "DONE")}

Function = tuple[str, str]      # its file, below the tree, and its name


class Counts(NamedTuple):
    """The instructions and calls of a function, or of all functions, for one job."""

    opcodes: float = 0.0
    calls: float = 0.0


class CountedCluster(LocalCluster):
    """Nodes of a tree that count what they execute."""

    def __init__(self, tree: Path, nodes: int) -> None:
        super().__init__(nodes)
        self._tree = tree

    def wrapper(self, name: str) -> Sequence[str]:
        """See LocalCluster."""
        return (sys.executable, str(NODE))

    def environment(self, name: str) -> Mapping[str, str]:
        """See LocalCluster."""
        return {"PYTHONPATH": f"{self._tree}:{self._tree / 'client' / 'src'}", "OPCODES_FILE": str(self.counted(name))}

    def counted(self, name: str) -> Path:
        """The file with what the node has counted."""
        return self.folder / f"{name}.opcodes"


def count(
    tree: Path, steps: Sequence[str], connections: int, jobs: int, *, nodes: int = 3, follower: bool = False,
) -> dict[Function, Counts]:
    """Count in a cluster of this tree, for `jobs` jobs that go through these steps."""
    with CountedCluster(tree, nodes) as cluster:
        leader = cluster.wait_for_leader()
        node = next(name for name in cluster.names if (name != leader) is follower)
        pid = cluster.pid(node)
        assert pid is not None
        target, made = Target(",".join(cluster.servers), cluster), Jobs([QUEUE], 100)
        uvloop.run(fill(target.leader(), made, WARM_UP_JOBS + (jobs if "GET" in steps else 0)))
        os.kill(pid, signal.SIGUSR2)
        run(target, made, [(connections, steps)], times=jobs)
        os.kill(pid, signal.SIGUSR2)
        rows = json.loads(_text(cluster.counted(node)))
    return {
        (file.removeprefix(f"{tree}/").removeprefix("sockpqd/"), name): Counts(opcodes / jobs, calls / jobs)
        for file, name, opcodes, calls in rows
    }


def _text(file: Path) -> str:
    """Return the text of a file as soon as it is there. Raises NodeError."""
    end = time.monotonic() + COUNTED_S
    while not file.exists():
        if time.monotonic() > end:
            raise NodeError(f"the node has written no {file}")
        time.sleep(POLL_S)
    return file.read_text()


def total(counted: Mapping[Function, Counts]) -> Counts:
    """Return the sums over all functions."""
    return Counts(sum(one.opcodes for one in counted.values()), sum(one.calls for one in counted.values()))


def table(here: Mapping[Function, Counts], before: Mapping[Function, Counts] | None, rows: int) -> list[str]:
    """Return lines of Markdown: the sums, and the functions that execute most or, beside others, that differ most."""
    def difference(function: Function) -> float:
        found = here.get(function, Counts()).opcodes
        return found if before is None else abs(found - before.get(function, Counts()).opcodes)

    functions = sorted({*here, *(before or {})}, key=difference, reverse=True)[:rows]
    lines = [("all", total(here), None if before is None else total(before))]
    lines += [(f"{file} {name}", here.get((file, name), Counts()),
               None if before is None else before.get((file, name), Counts())) for file, name in functions]
    if before is None:
        return ["| function | opcodes | calls |", "|---|--:|--:|",
                *(f"| {name} | {now.opcodes:,.1f} | {now.calls:.2f} |" for name, now, _ in lines)]
    return ["| function | opcodes before | opcodes | calls before | calls |", "|---|--:|--:|--:|--:|",
            *(f"| {name} | {then.opcodes:,.1f} | {now.opcodes:,.1f} | {then.calls:.2f} | {now.calls:.2f} |"
              for name, now, then in lines if then is not None)]


@click.command(help=__doc__.split("\n", maxsplit=1)[0] if __doc__ else None)
@click.argument("steps", type=click.Choice(list(STEPS)))
@click.option("--beside", metavar="COMMIT", help="Count in the tree of this commit as well.")
@click.option("--connections", default=100, show_default=True, type=click.IntRange(1, 10_000))
@click.option("--jobs", default=4000, show_default=True, type=click.IntRange(1))
@click.option("--follower", is_flag=True, help="Count at a follower, not at the leader.")
@click.option("--rows", default=30, show_default=True, type=click.IntRange(1), help="Functions in the table.")
def main(steps: str, beside: str | None, connections: int, jobs: int, follower: bool, rows: int) -> None:
    """Count, and print the table."""
    before = None
    with tempfile.TemporaryDirectory(prefix="sockpqd-") as folder:
        if beside is not None:
            tree = Path(folder) / "tree"
            unpack(beside, tree)
            if not (tree / "sockpqd").exists():         # its program would run what is here
                raise click.ClickException(f"{beside} has no package sockpqd yet")
            before = count(tree, STEPS[steps], connections, jobs, follower=follower)
    here = count(HERE, STEPS[steps], connections, jobs, follower=follower)
    click.echo("\n".join(table(here, before, rows)))


if __name__ == "__main__":
    main()
