"""The groups of FAIR in a snapshot: restored as they were, and refused where they cannot be right."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from sockpqd.core import (
    CloneChunk,
    Configure,
    ConfigureQueue,
    End,
    FairChange,
    Get,
    GetWith,
    How,
    InvalidSnapshot,
    Machine,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Sched,
    Touch,
)
from tests.core.helpers.forge import forged, frames_of
from tests.core.helpers.logs import ask, lead, restored, run, snapshot_of
from tests.core.snapshot.test_snapshot import refuse

# Places in the frames.
THRESHOLDS, CAP, MULTIPLIER, KEEP, NEXT_TURN, LEVELS, TASKS, ACCOUNTS = 1, 2, 3, 4, 6, 7, 8, 9
NAME, USED, LEVEL, PRIORITY, TURN, OFFERED, IDLE = range(7)
BEYOND_63_BITS = 3000       # times that it takes to use more microseconds


@cache
def example_snapshot() -> bytes:
    """Return a snapshot with groups that wait, run, are idle, are paused, have much time; one of two queues."""
    machine = Machine()
    run(machine, lead(), now_ms=1000)
    ask(machine, Configure(fair=FairChange((0, 1, 10))), *[
        PutWith(Put(queue, 0, b"x"), group=group) for queue, group in (("q", "a"), ("r", "a"), ("q", "b"), ("p", "c"))
    ], Put("r", 0, b"x"), now_ms=1000)
    ask(machine, PauseQueue("p", False, True), ConfigureQueue("q", QueueChange(limit=1)), now_ms=1000)
    get = GetWith(Get(("r",), 60_000), policy=Policy.FAIR)
    ask(machine, get, Touch(1, ran_ms=12_000), get, End(2, How.DONE, ran_ms=10**12), now_ms=2000)
    ask(machine, *[Touch(1, ran_ms=10**15)] * BEYOND_63_BITS, now_ms=3000)
    return snapshot_of(machine)


def example() -> Machine:
    """Return a machine with this state."""
    return restored(example_snapshot())


def altered(change: Callable[[dict[str, Any]], None]) -> bytes:
    """Return the snapshot of the example with changed frames; of each kind the last one can be changed."""
    frames = frames_of(example_snapshot())
    by_kind = {frame[0]: frame for frame in frames}
    by_kind["all"] = frames
    change(by_kind)
    return forged(*frames)


def in_table(at: int, value: object) -> Callable[[dict[str, Any]], None]:
    """Change a value in the table."""
    def change(frames: dict[str, Any]) -> None:
        frames["fair"][at] = value
    return change


def in_level(at: int, value: object) -> Callable[[dict[str, Any]], None]:
    """Change a value of the second level: time, least priority, choices."""
    def change(frames: dict[str, Any]) -> None:
        frames["fair"][LEVELS][1][at] = value
    return change


def in_row(group: str, at: int, value: object) -> Callable[[dict[str, Any]], None]:
    """Change a value in the row of a group."""
    def change(frames: dict[str, Any]) -> None:
        (row,) = [row for row in frames["groups"][1] if row[NAME] == group]
        row[at] = value
    return change


def without(kind: str) -> Callable[[dict[str, Any]], None]:
    """Return a change that removes the frame of this kind."""
    def change(frames: dict[str, Any]) -> None:
        frames["all"].remove(frames[kind])
    return change


def rows(make: Callable[[list[Any]], list[Any]]) -> Callable[[dict[str, Any]], None]:
    """Replace the rows of groups, with the right count."""
    def change(frames: dict[str, Any]) -> None:
        frames["groups"][1] = make(frames["groups"][1])
        frames["fair"][ACCOUNTS] = len(frames["groups"][1])
    return change


def test_times_of_snapshots_before_weights_are_microseconds() -> None:
    def before_weights(frames: dict[str, Any]) -> None:
        assert frames["fair"].pop() == 1
        for level in frames["fair"][LEVELS]:
            level[:2] = [None if time is None else time[:-3] or "0" for time in level[:2]]
        for row in frames["groups"][1]:
            row[PRIORITY] = row[PRIORITY][:-3] or "0"

    machine, copy = example(), restored(altered(before_weights))
    assert copy.fair_levels() == machine.fair_levels()
    assert [copy.fair_group(group) for group in "abcr"] == [machine.fair_group(group) for group in "abcr"]


def test_the_example_is_right_as_it_stands_and_has_everything() -> None:
    machine = example()
    copy = restored(altered(lambda frames: None))
    assert snapshot_of(copy) == snapshot_of(machine) == example_snapshot()
    assert copy.fair_levels() == machine.fair_levels()
    for group in "abcr":
        assert copy.fair_group(group) == machine.fair_group(group) is not None
    by_kind = {frame[0]: frame for frame in frames_of(snapshot_of(machine))}
    table, groups = by_kind["fair"], by_kind["groups"]
    assert {row[OFFERED] for row in groups[1]} == {True, False}
    assert [row[NAME] for row in groups[1] if row[IDLE] is not None] == ["r"]
    assert max(int(time_us) for time_us, *_ in table[LEVELS]) > 0
    assert max(int(row[USED]) for row in groups[1]) > 2**63


@pytest.mark.parametrize("change", [
    pytest.param(change, id=name) for name, change in {
        "no table": without("fair"),
        "no rows": without("groups"),
        "neither": lambda frames: [without(kind)(frames) for kind in ("fair", "groups")],
        "one threshold": in_table(THRESHOLDS, [0]),
        "seventeen thresholds": in_table(THRESHOLDS, [*range(17)]),
        "thresholds from one": in_table(THRESHOLDS, [1, 2]),
        "equal thresholds": in_table(THRESHOLDS, [0, 1, 1]),
        "falling thresholds": in_table(THRESHOLDS, [0, 2, 1]),
        "a threshold beyond all": in_table(THRESHOLDS, [0, 2**62]),
        "no cap": in_table(CAP, 999),
        "a cap of two days": in_table(CAP, 2 * 86_400_000),
        "multiplier zero": in_table(MULTIPLIER, 0),
        "a multiplier that fills the memory": in_table(MULTIPLIER, 2**62),
        "kept for two days": in_table(KEEP, 2 * 86_400_000),
        "a negative time": in_table(KEEP, -1),
        "no next turn": in_table(NEXT_TURN, 0),
        "a level too few": in_table(LEVELS, [["0", None, 0]] * 15),
        "a level too many": in_table(LEVELS, [["0", None, 0]] * 17),
        "a task twice": in_table(TASKS, [["q", "a"], ["q", "b"]]),
        "two first uses": in_table(TASKS, [[None, ""], [None, "b"]]),
        "a group too few": in_table(ACCOUNTS, 3),
        "a group too many": in_table(ACCOUNTS, 5),
        "a time with a sign": in_level(0, "-1"),
        "a time in words": in_level(0, "one"),
        "no time": in_level(0, ""),
        "a time with leading zeros": in_level(0, "01"),
        "a time in other digits": in_level(0, "\u0663"),
        "a time of a million digits": in_level(0, "9" * 1_000_000),
        "a time that is a number": in_level(0, 1),
        "a least priority in words": in_level(1, "least"),
        "fewer than no choices": in_level(2, -1),
        "used in words": in_row("a", USED, "much"),
        "a level beyond the last": in_row("a", LEVEL, 16),
        "a negative level": in_row("a", LEVEL, -1),
        "a negative priority": in_row("a", PRIORITY, "-5"),
        "a turn not given yet": in_row("a", TURN, 10**6),
        "offered is no truth value": in_row("a", OFFERED, 1),
        "idle with jobs": in_row("a", IDLE, 2000),
        "without jobs and not idle": in_row("r", IDLE, None),
        "offered without jobs": in_row("r", OFFERED, True),
        "a group twice": rows(lambda known: [known[0], *known]),
        "groups out of order": rows(lambda known: known[::-1]),
        "a group of jobs is missing": rows(lambda known: known[1:]),
        "a row too short": rows(lambda known: [known[0][:-1], *known[1:]]),
    }.items()
])
def test_groups_that_cannot_be_right_are_refused(change: Callable[[dict[str, Any]], None]) -> None:
    refuse(example(), altered(change))
    refuse(Machine(), altered(change))


@pytest.mark.parametrize("change", [
    in_table(TASKS, [["no such name", "a"]]), in_table(TASKS, [["q", "no such name"]]), in_row("r", NAME, "z z"),
])
def test_names_that_the_protocol_does_not_allow_are_refused_of_a_client(
    change: Callable[[dict[str, Any]], None],
) -> None:
    machine, snapshot = example(), altered(change)
    ask(machine, CloneChunk(1, total_bytes=len(snapshot)), CloneChunk(1, snapshot))
    before = machine.fair_levels()
    assert ask(machine, CloneChunk(1, last=True)) == [InvalidSnapshot()]
    assert machine.fair_levels() == before


def test_a_restored_node_knows_that_the_group_of_the_queue_is_open() -> None:
    machine = Machine()
    run(machine, lead(), now_ms=1000)
    ask(machine, ConfigureQueue("q", QueueChange(sched=Sched.GROUPS, group_limit=2)), now_ms=1000)
    others = [PutWith(Put("q", 0, b"x"), group=f"g{number}") for number in range(15)]
    ask(machine, *others[:3], Put("q", 0, b"own"), *others[3:], now_ms=1000)
    ask(machine, GetWith(Get(("q",), 60_000), 3), now_ms=1000)
    other = restored(snapshot_of(machine))
    for _ in range(3):
        assert ask(other, Get(("q",), 60_000), now_ms=1001) == ask(machine, Get(("q",), 60_000), now_ms=1001)
