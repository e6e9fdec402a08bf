"""The shares that policies give, over a million choices in the state machine and over 10,000 at the socket.

    python -m bench.core.shares [--choices 1000000] [--commands 10000] [--record FILE]

Weights of 1, 2 and 7; weights of 1 and 3 in queues with a LIMIT; the levels of FAIR while all of them always have work:
five, and two. Exit code 1: a share is further from its target than the bound, in percentage points, or a LIMIT did not
hold.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path

import click
from sockpq import Client

from bench.core.loads import CoreAlone, CoreDriver
from bench.load_generator.console import make_console
from bench.load_generator.figures import Row
from bench.load_generator.target import RECORD
from bench.reports.recording import Result, finish
from devcluster.cluster import LocalCluster
from sockpqd.core import (
    Configure,
    ConfigureQueue,
    Done,
    End,
    FairChange,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Later,
    Policy,
    Put,
    PutWith,
    QueueChange,
)

WEIGHTS = {"a": 1, "b": 2, "c": 7}
LIMITED = {"a": 1, "b": 3}
WEIGHT_BOUND, LEVEL_BOUND = 2.0, 1.0            # percentage points
AT_ONCE = 1000
APART_S = 10_000_000                            # between levels, so that no group changes its level
RAN_MS = 1000                                   # of each choice by FAIR
HELD = 4                                        # jobs that run at once where there are LIMITs


def weights(choices: int, asked: tuple[str, ...] | None) -> Mapping[str, float]:
    """The share of each queue by WEIGHT, in percent, among this many jobs."""
    driver = _weighed(WEIGHTS, AT_ONCE)
    counts: Counter[str] = Counter()
    for _ in range(choices // AT_ONCE):
        (reply,) = driver.do(GetWith(Get(asked), AT_ONCE, Policy.WEIGHT)).replies
        assert isinstance(reply, HandedMany)
        counts.update(job.queue for job in reply.jobs)
        driver.do(End(tuple(job.id for job in reply.jobs), How.DONE), *[Put(job.queue, 0, b"") for job in reply.jobs])
    return _percent(counts)


def limited(choices: int) -> tuple[Mapping[str, float], int]:
    """The share of each queue among the choices at which both had room, and how many jobs of one ran at most.

    Each queue has a LIMIT of HELD - 1, and HELD jobs run at once; then the oldest is done.
    """
    driver = _weighed(LIMITED, 2 * HELD)
    for queue in LIMITED:
        driver.do(ConfigureQueue(queue, QueueChange(limit=HELD - 1)))
    running: deque[Handed] = deque()
    counts: Counter[str] = Counter()
    most = 0
    for _ in range(choices):
        held = Counter(job.queue for job in running)
        (reply,) = driver.do(GetWith(Get(None), policy=Policy.WEIGHT)).replies
        assert isinstance(reply, Handed)
        if max(held.values(), default=0) < HELD - 1:
            counts[reply.queue] += 1
        most = max(most, held[reply.queue] + 1)
        running.append(reply)
        if len(running) == HELD:
            ended = running.popleft()
            driver.do(Done(ended.id), Put(ended.queue, 0, b""))
    return _percent(counts), most


def levels(choices: int, count: int) -> Mapping[str, float]:
    """The share of the first levels of FAIR, in percent, while each always has a group with work."""
    driver = CoreDriver()
    driver.do(Configure(fair=FairChange(tuple(level * APART_S for level in range(5)))))
    by_order = GetWith(Get(("q",)), policy=Policy.ORDER)
    for level in range(count):
        name = f"level {level}"
        driver.do(*[PutWith(Put("q", 0, name.encode()), group=name)] * 2)      # one waits while the other runs
        job = driver.do(by_order).replies[0]
        while isinstance(job, Handed) and job.data.decode() != name:
            driver.do(Later(job.id))
            job = driver.do(by_order).replies[0]
        assert isinstance(job, Handed)
        driver.do(End(job.id, How.LATER, ran_ms=level * APART_S * 1000))
    counts: Counter[str] = Counter()
    for number in range(-1000, choices):
        (job,) = driver.do(GetWith(Get(None), policy=Policy.FAIR)).replies
        assert isinstance(job, Handed)
        if number >= 0:                                                     # the first ones even out the beginning
            counts[job.data.decode()] += 1
        driver.do(End(job.id, How.LATER, yielded=True, ran_ms=RAN_MS))
    return _percent(counts)


def at_the_socket(commands: int) -> Mapping[str, float]:
    """The share of each queue by WEIGHT, in percent, among this many GETs on three real nodes."""
    counts: Counter[str] = Counter()
    with LocalCluster(3) as cluster:
        cluster.wait_for_leader()
        with Client(cluster.servers) as client:
            for queue, weight in WEIGHTS.items():
                client.queue_create(queue, weight=weight)
                client.put_many(queue, [b"x"] * AT_ONCE)
            for number in range(commands):
                job = client.get(tuple(WEIGHTS), expire=60, policy="weight")
                assert job is not None
                counts[job.queue] += 1
                job.done()
                if number % AT_ONCE == AT_ONCE - 1:
                    for queue in WEIGHTS:
                        client.put_many(queue, [b"x"] * (AT_ONCE - client.total(queue).jobs))
    return _percent(counts)


def _weighed(queues: Mapping[str, int], jobs: int) -> CoreDriver:
    """A machine with this many jobs in each of these queues, and their weights."""
    driver = CoreDriver()
    for queue, weight in queues.items():
        driver.do(ConfigureQueue(queue, QueueChange(weight=weight)), *[Put(queue, 0, b"")] * jobs)
    return driver


def _percent(counts: Mapping[str, int]) -> Mapping[str, float]:
    total = sum(counts.values())
    return {name: 100 * count / total for name, count in sorted(counts.items())}


def off_by(found: Mapping[str, float], parts: Mapping[str, int]) -> float:
    """Return the greatest distance of a share from its target, in percentage points."""
    total = sum(parts.values())
    return max(abs(found.get(name, 0.0) - 100 * part / total) for name, part in parts.items())


@click.command()
@click.option("--choices", default=1_000_000, show_default=True, type=click.IntRange(1000), help="In the core.")
@click.option("--commands", default=10_000, show_default=True, type=click.IntRange(0), help="At the socket; 0: none.")
@RECORD
def main(choices: int, commands: int, record_to: Path | None) -> None:
    """Measure the shares of a choice and of commands."""
    result = Result("shares")

    def tell(what: str, number: int, found: Mapping[str, float], parts: Mapping[str, int], bound: float) -> None:
        worst = off_by(found, parts)
        row: Row = {
            "what": what, "choices": number, "parts": ":".join(map(str, parts.values())),
            "percent": " ".join(f"{share:.2f}" for share in found.values()), "off_by": worst,
        }
        result.rows.append(row)
        if worst > bound:
            result.note_problems({f"{what}: off by more than {bound:g} percentage points": 1})

    tell("WEIGHT, GET a|b|c", choices, weights(choices, tuple(WEIGHTS)), WEIGHTS, WEIGHT_BOUND)
    tell("WEIGHT, GET *", choices, weights(choices, None), WEIGHTS, WEIGHT_BOUND)
    found, most = limited(choices // 10)
    tell(f"WEIGHT, LIMIT {HELD - 1} each", choices // 10, found, LIMITED, WEIGHT_BOUND)
    if most > HELD - 1:
        result.note_problems({f"{most} jobs of a queue with LIMIT {HELD - 1} ran at once": 1})
    for count in (5, 2):
        parts = {f"level {level}": 2 ** (count - 1 - level) for level in range(count)}
        tell(f"FAIR, {count} levels", choices, levels(choices, count), parts, LEVEL_BOUND)
    if commands:
        tell("WEIGHT, three nodes", commands, at_the_socket(commands), WEIGHTS, WEIGHT_BOUND)
    finish(make_console(), result, CoreAlone(), record_to)


if __name__ == "__main__":
    main()
