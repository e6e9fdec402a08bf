"""Snapshots from clients: refused if nodes would differ, or could not read their own snapshots any more."""

from __future__ import annotations

from typing import Any

import pytest

from sockpqd.core import (
    Accepted,
    Get,
    GetWith,
    InvalidSnapshot,
    Kick,
    Put,
    PutWith,
    Return,
    Touch,
)
from sockpqd.core.limits import NUMBER_MAX
from sockpqd.core.ops.queues import Order
from tests.core.handlers.test_clone import clone_of
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import HEAD, RUNNING, WAITING, changed
from tests.core.helpers.logs import ask, restored, snapshot_of
from tests.core.helpers.paging import MemoryStore, paged_machine
from tests.core.snapshot.test_jobs import PULSE, PULSES, QUEUE

TOO_MUCH = NUMBER_MAX + 1
FEW = changed(HEAD, 10, 9000)
EXTRAS: list[Any] = [*[None] * 6, [], *[None] * 6]
COUNTS = [1, 2, 3, 4, 5, 6]


def extras(at: int, value: object) -> list[Any]:
    """Return the extras of a job of which only this one is set."""
    return changed(EXTRAS, at, value)


def one(kind: str, at: int, value: object, *, counts: bool = False) -> bytes:
    """Return a snapshot with one job, which has this value at one place."""
    first = extras(12, COUNTS) if counts else EXTRAS
    waiting = [0, 0, 3, None, b"a", 0, None, first]
    rows: dict[str, list[Any]] = {
        "waiting": waiting,
        "delayed": [5000, 3, 0, None, b"a", 0, 5000, first],
        "buried": [7, 3, 0, None, b"a", 0, None, first],
        "running": changed(RUNNING[1][0], 13, first),
    }
    row = changed(rows[kind], at, value)
    frame = ["running", [row]] if kind == "running" else [kind, "q", [row]]
    sums = {"waiting": [1, 0, 0, 0], "delayed": [1, 0, 1, 0], "buried": [0, 0, 0, 1], "running": [0, 1, 0, 0]}
    return forged(FEW, frame, ["end", *sums[kind]])


def answer(snapshot: bytes) -> object:
    """Return how a CLONE of it ends; whatever it was, the machine can read its own snapshot."""
    machine = paged_machine(MemoryStore())
    reply = ask(machine, *clone_of(snapshot))[-1]
    ask(machine, GetWith(Get(None), 10), Kick("q", 10, here=True, buried=True), Return(2), Touch(1), Touch(2))
    ask(machine, PutWith(Put("q", 0, b"")))
    while machine.page_out():
        pass
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
    return reply


@pytest.mark.parametrize(("kind", "at"), [
    ("waiting", 5), ("waiting", 6), ("delayed", 5), ("delayed", 6), ("buried", 5), ("buried", 6), ("running", 10),
    ("running", 11), ("running", 12),
])
def test_numbers_of_a_job(kind: str, at: int) -> None:
    assert answer(one(kind, at, NUMBER_MAX)) == Accepted()
    assert answer(one(kind, at, TOO_MUCH)) == InvalidSnapshot()


@pytest.mark.parametrize(("kind", "at"), [("waiting", 0), ("delayed", 2), ("buried", 2), ("running", 2)])
def test_priorities(kind: str, at: int) -> None:
    for priority in (2**63 - 1, -(2**63)):
        assert answer(one(kind, at, priority)) == Accepted()
    assert answer(one(kind, at, 2**64 - 1)) == InvalidSnapshot()


def test_a_priority_that_no_page_can_hold() -> None:
    """With one job in a queue nothing is paged."""
    machine = paged_machine(MemoryStore())
    rows = [[2**64 - 1, 0, seq, None, b"a", 0, None, None] for seq in range(1, 1501)]
    ask(machine, *clone_of(forged(FEW, ["waiting", "q", rows], ["end", 1500, 0, 0, 0]), chunk_bytes=1 << 16))
    while machine.page_out():
        pass


@pytest.mark.parametrize("at", [1, 2, 11])
def test_numbers_among_the_extras(at: int) -> None:
    for kind, place in (("buried", 7), ("running", 13)):
        assert answer(one(kind, place, extras(at, TOO_MUCH))) == InvalidSnapshot()


@pytest.mark.parametrize("at", range(6))
def test_the_counts_of_a_numbered_job(at: int) -> None:
    for kind, place in (("waiting", 7), ("delayed", 7), ("buried", 7), ("running", 13)):
        assert answer(one(kind, place, extras(12, changed(COUNTS, at, NUMBER_MAX)))) == Accepted()
        assert answer(one(kind, place, extras(12, changed(COUNTS, at, TOO_MUCH)))) == InvalidSnapshot()


def test_a_numbered_job_that_runs_was_handed_out() -> None:
    """Otherwise RETURN would count its hand-outs below zero."""
    assert answer(one("running", 13, extras(12, changed(COUNTS, 0, 0)))) == InvalidSnapshot()


def test_a_time_is_there_only_where_jobs_are_ordered_by_it() -> None:
    """A job is searched by its number among the jobs of its priority, which are sorted by it unless they have times.

    How far a search among unsorted ones comes depends on the blocks of the list, in which nodes differ.
    """
    assert answer(one("waiting", 1, 5)) == InvalidSnapshot()
    queue = ["queues", [changed(changed(QUEUE, 22, None), 3, Order.TIME.value)]]
    waiting = ["waiting", "q", [[0, 5, 3, None, b"a", 0, None, None]]]
    assert answer(forged(FEW, queue, waiting, ["end", 1, 0, 0, 0])) == Accepted()


@pytest.mark.parametrize("at", [1, 4, 6, 7, 8, 10, 16])
def test_settings_of_a_queue(at: int) -> None:
    queue = changed(QUEUE, 22, None)
    assert answer(forged(FEW, ["queues", [queue]], WAITING, ["end", 2, 0])) == Accepted()
    assert answer(forged(FEW, ["queues", [changed(queue, at, TOO_MUCH)]], WAITING, ["end", 2, 0])) == InvalidSnapshot()


@pytest.mark.parametrize("at", range(1, 10))
def test_counters_of_a_queue(at: int) -> None:
    counted = changed(["q", *[1] * 9], at, TOO_MUCH)
    assert answer(forged(FEW, WAITING, ["counted", [counted]], ["end", 2, 0])) == InvalidSnapshot()


@pytest.mark.parametrize("at", [14, 15])
def test_counters_of_a_pulse(at: int) -> None:
    assert answer(forged(FEW, PULSES, changed(PULSE, at, TOO_MUCH), ["end", 0, 0])) == InvalidSnapshot()
