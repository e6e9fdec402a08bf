"""The cost of a GET of any queue by each policy, with few and with many queues; the state machine alone.

    python -m bench.core.choices [--few 10] [--many 10000] [--choices 20000] [--record FILE]

Each queue has 20 jobs. Ten jobs are taken, one in each entry, and that is measured; then they are done and others put
in their place, which is not. Few and many queues are measured in turn, 500 choices at a time, and the middle one of
each counts. "opcodes" are instructions of Python for one choice: a figure without noise, the same on every machine with
the same version of Python.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

import click
from msgspec import Struct

from bench.core.loads import CoreAlone, CoreDriver, opcodes, timed_ns
from bench.load_generator.console import make_console
from bench.load_generator.figures import Row
from bench.load_generator.target import RECORD
from bench.reports.recording import Result, finish
from sockpqd.core import (
    ConfigureQueue,
    Done,
    End,
    Get,
    GetWith,
    Handed,
    How,
    InTurn,
    Operation,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Tick,
)

JOBS = 20               # in each queue
AT_ONCE = 10            # taken before they are done
BLOCK = 500             # choices between a change from few queues to many
COUNTED = 500           # choices of which the instructions are counted
RAN_MS = 10
INDEXED = 500           # names that come into an index in one entry, at least
RATIO_MAX = 3.0

# What measures a call: nanoseconds, or instructions.
Gauge = Callable[[Callable[[], object]], int]


class ChoiceKind(Struct, frozen=True):
    """A kind of choice. `in_groups`: among as many groups in one queue."""

    name: str
    policy: Policy
    in_groups: bool = False


KINDS = (
    *[ChoiceKind(policy.name, policy) for policy in Policy if policy is not Policy.PLACE],      # PLACE is for lists
    ChoiceKind("FAIR, groups in one queue", Policy.FAIR, in_groups=True),
)


class Choices:
    """A machine with this many queues or groups, and choices among them."""

    def __init__(self, kind: ChoiceKind, count: int) -> None:
        self._kind = kind
        self._driver = CoreDriver()
        self._last: str | None = None           # the queue that gave the last job, for turns
        for number in range(count):
            name = f"q{number:05}"
            self._driver.do(*[self._put(name)] * JOBS)
            if kind.policy is Policy.WEIGHT:
                self._driver.do(ConfigureQueue(name, QueueChange(weight=1 + number % 3)))
        for _ in range(2 + count // INDEXED):
            self.measure(_just_do, AT_ONCE)
            self._driver.do(Tick())

    def measure(self, gauge: Gauge, choices: int) -> int:
        """Return the sum of `gauge` over this many choices, with AT_ONCE in each gauged call."""
        found = 0
        for _ in range(choices // AT_ONCE):
            taken: list[Handed] = []
            found += gauge(partial(self._take, taken))
            self._give_back(taken)
        return found

    def _put(self, name: str) -> Operation:
        data = name.encode()
        return PutWith(Put("q", 0, data), group=name) if self._kind.in_groups else Put(name, 0, data)

    def _take(self, taken: list[Handed]) -> None:
        policy = self._kind.policy
        for _ in range(AT_ONCE):
            get: Operation = GetWith(Get(None), policy=policy)
            if policy in (Policy.RR, Policy.PRIORITY):
                get = GetWith(Get(None), policy=policy, turn=InTurn(self._last))
            (reply,) = self._driver.do(get).replies
            assert isinstance(reply, Handed)
            self._last = reply.queue
            taken.append(reply)

    def _give_back(self, taken: list[Handed]) -> None:
        fair = self._kind.policy is Policy.FAIR
        for job in taken:
            self._driver.do(
                End(job.id, How.DONE, ran_ms=RAN_MS) if fair else Done(job.id), self._put(job.data.decode()),
            )


def _just_do(call: Callable[[], object]) -> int:
    call()
    return 0


def compare(kind: ChoiceKind, counts: tuple[int, int], choices: int) -> Row:
    """Return the cost of a choice among few and among many queues, and the ratio of many to few."""
    machines = [Choices(kind, count) for count in counts]
    blocks: list[list[int]] = [[] for _ in counts]
    gc.collect()
    gc.disable()
    for _ in range(max(1, choices // BLOCK)):
        for machine, found in zip(machines, blocks, strict=True):
            found.append(machine.measure(timed_ns, min(choices, BLOCK)))
    gc.enable()
    cpu_us = [median(found) / min(choices, BLOCK) / 1000 for found in blocks]
    steps = [machine.measure(opcodes, min(choices, COUNTED)) / min(choices, COUNTED) for machine in machines]
    row: Row = {"policy": kind.name}
    for name, figures in (("CPU_us", cpu_us), ("opcodes", steps)):
        row |= {f"{name}_of_{count:,}": figure for count, figure in zip(counts, figures, strict=True)}
        row[f"{name}_ratio"] = figures[-1] / figures[0]
    return row


@click.command()
@click.option("--few", default=10, show_default=True, type=click.IntRange(1), help="Queues.")
@click.option("--many", default=10_000, show_default=True, type=click.IntRange(1), help="Queues.")
@click.option("--choices", default=20_000, show_default=True, type=click.IntRange(AT_ONCE), help="Of each kind.")
@RECORD
def main(few: int, many: int, choices: int, record_to: Path | None) -> None:
    """Measure what a choice costs by each policy; exit code 1 if it costs more than 3 times as much among many."""
    result = Result("choices")
    for kind in KINDS:
        row = compare(kind, (few, many), choices)
        result.rows.append(row)
        if max(float(row["CPU_us_ratio"] or 0), float(row["opcodes_ratio"] or 0)) > RATIO_MAX:
            result.note_problems({f"{kind.name} costs more than {RATIO_MAX:g} times as much": 1})
    finish(make_console(), result, CoreAlone(), record_to)


if __name__ == "__main__":
    main()
