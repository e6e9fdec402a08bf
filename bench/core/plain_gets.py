"""The cost of plain commands in the state machine, in this tree and in another one, for example of an older commit.

    git worktree add /tmp/before COMMIT
    python -m bench.core.plain_gets --before /tmp/before [--rounds 10]

Each round is a process for each tree, in turn. "opcodes" are instructions of Python for one command, a figure without
noise; of the processor times the least of all rounds counts, as everything else that the machine does only adds to it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import click

from bench.core.loads import CoreAlone, CoreDriver, opcodes, timed_ns
from bench.load_generator.console import make_console
from bench.load_generator.target import RECORD
from bench.reports.recording import Result, finish
from sockpqd.core import Done, Get, Operation, Put

ROOT = Path(__file__).parents[2]
QUEUES = tuple(f"q{number}" for number in range(10))
JOBS = 1000             # in each queue
BLOCK = 200             # commands in one measurement
BLOCKS = 20
COUNTED = 200

GETS = {
    "GET q": Get(QUEUES[:1]),
    "GET q EXPIRE": Get(QUEUES[:1], expire_ms=60_000),
    "GET of ten queues": Get(QUEUES),
    "GET *": Get(None),
}
PUT, DONE = "PUT", "DONE"


def measure() -> dict[str, tuple[float, float]]:
    """Return each command's processor time in microseconds, the least of all blocks, and its instructions."""
    driver = CoreDriver()
    for queue in QUEUES:
        driver.do(*[Put(queue, 0, b"x" * 100)] * JOBS)
    times_us: dict[str, float] = {}
    steps: dict[str, float] = {}
    for name, get in GETS.items():
        for block in range(BLOCKS + 1):
            ids = range(driver.machine.next_id, driver.machine.next_id + BLOCK)
            parts: dict[str, list[Operation]] = {
                name: [get] * BLOCK, DONE: [Done(one) for one in ids],
                PUT: [Put(QUEUES[one % len(QUEUES)], 0, b"x" * 100) for one in ids],
            }
            for command, operations in parts.items():
                call = partial(_entries, driver, operations)
                if block == BLOCKS:
                    steps[command] = opcodes(call) / BLOCK
                else:
                    times_us[command] = min(times_us.get(command, 1e9), timed_ns(call) / BLOCK / 1000)
    return {command: (times_us[command], steps[command]) for command in times_us}


def _entries(driver: CoreDriver, operations: list[Operation]) -> None:
    for operation in operations:
        driver.do(operation)


def measure_in(tree: Path) -> dict[str, tuple[float, float]]:
    """Measure in a process of its own, with the state machine of another tree."""
    if not (tree / "sockpqd" / "core").exists():
        raise click.ClickException(f"{tree} is no tree of sockpqd: it has no sockpqd/core")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "sockpqd").symlink_to(tree.resolve() / "sockpqd")
        ended = subprocess.run(
            [sys.executable, "-c", "import json\nfrom bench.core import plain_gets\nfrom sockpqd import core\n"
             "print(json.dumps([core.__file__, plain_gets.measure()]))"],
            env={**os.environ, "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}"}, cwd=folder, capture_output=True, text=True,
            check=False,
        )
        if ended.returncode:
            raise click.ClickException(f"{tree}: {ended.stderr.strip().splitlines()[-1]}")
        file, found = json.loads(ended.stdout)
        assert Path(file).resolve().is_relative_to(tree.resolve()), file
    return {command: tuple(figures) for command, figures in found.items()}


@click.command()
@click.option("--before", required=True, type=click.Path(exists=True, file_okay=False, path_type=Path),
              help="A tree of another commit.")
@click.option("--rounds", default=10, show_default=True, type=click.IntRange(1), help="Processes for each tree.")
@RECORD
def main(before: Path, rounds: int, record_to: Path | None) -> None:
    """Measure plain commands in this tree and in another one."""
    least: dict[Path, dict[str, tuple[float, float]]] = {}
    for number in range(2 * rounds):
        tree = (before, ROOT)[(number + number // 2) % 2]           # a b b a a b ..: none is always the second
        for command, (cpu_us, steps) in measure_in(tree).items():
            found = least.setdefault(tree, {})
            found[command] = min(found.get(command, (1e9, 0.0))[0], cpu_us), steps
    result = Result("plain_gets")
    for command, (cpu_us, steps) in least[ROOT].items():
        cpu_us_before, steps_before = least[before][command]
        result.rows.append({
            "command": command, "CPU_us_before": cpu_us_before, "CPU_us": cpu_us, "CPU_ratio": cpu_us / cpu_us_before,
            "opcodes_before": steps_before, "opcodes": steps, "opcodes_ratio": steps / steps_before,
        })
    finish(make_console(), result, CoreAlone(), record_to)


if __name__ == "__main__":
    main()
