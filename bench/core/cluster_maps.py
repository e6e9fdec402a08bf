"""The cost of plain commands in the state machine without a map of clusters, and with a small and a full one.

    python -m bench.core.cluster_maps [--blocks 200]

All machines take turns, block by block, in one process. "opcodes" are instructions of Python for one command, a figure
without noise; of the processor times the median of all blocks counts. A name is looked up in the map once, and
remembered: "PUT, new names" is the first look.
"""

from __future__ import annotations

import itertools
from pathlib import Path
from statistics import median

import click

from bench.core.loads import CoreAlone, CoreDriver, opcodes, timed_ns
from bench.load_generator.console import make_console
from bench.load_generator.target import RECORD
from bench.reports.recording import Result, finish
from sockpqd.core import MAP_BYTES_MAX, Done, Get, Lead, Operation, Put, SetMap

CLUSTERS = 32
OWN = bytes(15) + b"\1"
QUEUES = tuple(f"q{number}" for number in range(10))
JOBS = 1000             # in each queue
BLOCK = 200             # commands in one measurement, each in an entry of its own
COMMANDS = PUT, NEW_NAMES, GET, DONE = "PUT", "PUT, new names", "GET q", "DONE"


def small_map() -> bytes:
    """Return a map of two clusters with a rule; this one is home."""
    return b"".join([*_clusters(2), b"RULE film. c1\n"])


def full_map() -> bytes:
    """Return a map of CLUSTERS clusters with as many rules as it may have; this one owns what is put."""
    lines, rules = _clusters(CLUSTERS), 0
    left = MAP_BYTES_MAX - sum(map(len, lines))
    while left >= len(line := f"RULE tenant{rules}. c{rules % CLUSTERS}\n".encode()):
        lines.append(line)
        left -= len(line)
        rules += 1
    return b"".join(lines)


def _clusters(count: int) -> list[bytes]:
    ids = [OWN[:8].hex(), *(f"{number:016x}" for number in range(1, count))]
    return [f"CLUSTER c{number} {one} h{number}:11361\n".encode() for number, one in enumerate(ids)]


MAPS = {"no map": None, "2 clusters, 1 rule": small_map(), f"{CLUSTERS} clusters, full": full_map()}


def prepared(text: bytes | None) -> CoreDriver:
    """Return a machine that has this map, and jobs."""
    driver = CoreDriver()
    driver.do(Lead("n1", 1, ("n1",), OWN, 0))
    if text is not None:
        driver.do(SetMap(1, text))
    for queue in QUEUES:
        driver.do(*[Put(queue, 0, b"x" * 100)] * JOBS)
    return driver


class MachineCosts:
    """One machine, and what its commands cost.

    `times_us`: of each block; `steps`: of one command.
    """

    def __init__(self, text: bytes | None) -> None:
        self.times_us: dict[str, list[float]] = {command: [] for command in COMMANDS}
        self.steps: dict[str, float] = {}
        self._driver = prepared(text)
        self._names = (f"tenant{number}.new" for number in itertools.count(0, CLUSTERS))

    def block(self, *, counted: bool = False) -> None:
        """Execute BLOCK commands of each kind; `counted`: count instructions, which takes long, instead of time."""
        ids = range(self._driver.machine.next_id, self._driver.machine.next_id + 2 * BLOCK)
        gets: list[Operation] = [Get(QUEUES[:1])] * BLOCK
        puts: list[Operation] = [Put(QUEUES[0], 0, b"x" * 100)] * BLOCK
        names = list(itertools.islice(self._names, BLOCK))
        parts: dict[str, list[Operation]] = {
            GET: gets, DONE: [Done(one) for one in ids[:BLOCK]], PUT: puts,
            NEW_NAMES: [Put(name, 0, b"") for name in names],
        }
        for command, operations in parts.items():
            def call(operations: list[Operation] = operations) -> None:
                for operation in operations:
                    self._driver.do(operation)
            if counted:
                self.steps[command] = opcodes(call) / BLOCK
            else:
                self.times_us[command].append(timed_ns(call) / BLOCK / 1000)
        self._driver.do(*[Get(tuple(names))] * BLOCK)
        self._driver.do(*[Done(one) for one in ids[BLOCK:]])


@click.command()
@click.option("--blocks", default=200, show_default=True, type=click.IntRange(1), help=f"Of {BLOCK} commands each.")
@RECORD
def main(blocks: int, record_to: Path | None) -> None:
    """Measure plain commands without a map and with maps."""
    measured = {name: MachineCosts(text) for name, text in MAPS.items()}
    for one in measured.values():
        one.block(counted=True)
    for number in range(blocks):
        order = list(measured.values())
        for one in order[number % len(order):] + order[:number % len(order)]:
            one.block()
    result = Result("cluster_maps")
    for command in COMMANDS:
        costs = {name: median(one.times_us[command]) for name, one in measured.items()}
        result.rows.append({
            "command": command,
            **{f"CPU_us, {name}": cost for name, cost in costs.items()},
            **{f"opcodes, {name}": one.steps[command] for name, one in measured.items()},
        })
    full = max(MAPS, key=lambda name: len(MAPS[name] or b""))
    result.summary = {
        "rules": full_map().count(b"RULE"),
        **{f"more_us, {command}": median(with_map - without for with_map, without in zip(
            measured[full].times_us[command], measured["no map"].times_us[command], strict=True))
           for command in COMMANDS},
    }
    finish(make_console(), result, CoreAlone(), record_to)


if __name__ == "__main__":
    main()
