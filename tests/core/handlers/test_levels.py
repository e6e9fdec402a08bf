"""Feature levels in the state: how the level rises, what is refused below it, and that all nodes agree."""

from __future__ import annotations

import re
from typing import Any

import pytest

from sockpqd.core import (
    FIRST_LEVEL,
    Accepted,
    Batch,
    ChangeInProgress,
    ChangeMember,
    Done,
    Get,
    GetWith,
    InvalidSnapshot,
    Machine,
    MemberChange,
    NotYet,
    Operation,
    Put,
    RaiseLevel,
    Request,
    SnapshotError,
    level_of,
)
from sockpqd.core import levels as feature_levels
from sockpqd.core.handlers import dispatch
from sockpqd.core.handlers.table import HANDLERS
from sockpqd.core.levels import FEATURE_LEVEL
from sockpqd.core.snapshot.write import FORMAT
from tests.core.handlers.test_clone import clone_of
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import END, HEAD, RUNNING, WAITING
from tests.core.helpers.logs import MEMBERS, ask, lead, restored, run, snapshot_of

RAISE = RaiseLevel(2, MEMBERS)


def cluster(known_level: int) -> Machine:
    """Return a machine that knows this many levels, in a cluster of level 1 with three voters."""
    machine = Machine(known_level)
    run(machine, lead())
    return machine


def test_a_cluster_begins_at_the_first_level_and_never_goes_down() -> None:
    machine = cluster(3)
    assert machine.level == FIRST_LEVEL == 1
    assert ask(machine, RAISE) == [Accepted()]
    assert machine.level == 2
    assert ask(machine, RaiseLevel(1, MEMBERS), RaiseLevel(0, MEMBERS)) == [Accepted()] * 2
    assert machine.level == 2


@pytest.mark.parametrize("counted", [(), MEMBERS[:2], (*MEMBERS, "n5")])
def test_the_level_is_not_raised_when_others_were_counted_than_the_members(counted: tuple[str, ...]) -> None:
    machine = cluster(3)
    assert ask(machine, RaiseLevel(2, counted)) == [ChangeInProgress()]
    assert machine.level == 1


def test_who_joins_in_the_meantime_has_not_been_counted() -> None:
    machine = cluster(3)
    assert ask(machine, ChangeMember("n4", MemberChange.JOIN), RAISE)[1] == ChangeInProgress()
    assert ask(machine, RaiseLevel(2, (*MEMBERS, "n4"))) == [Accepted()]


def test_the_level_is_in_snapshots() -> None:
    machine = cluster(2)
    low = snapshot_of(machine)
    ask(machine, RAISE)
    assert restored(snapshot_of(machine)).level == 2
    assert restored(low).level == 1


def test_a_state_that_says_nothing_of_levels_has_the_first() -> None:
    assert restored(forged(HEAD[:-1], WAITING, RUNNING, END)).level == 1


def test_a_machine_refuses_the_snapshot_of_a_level_that_it_does_not_know() -> None:
    above = cluster(2)
    ask(above, RAISE)
    machine = cluster(1)
    before = snapshot_of(machine)
    with pytest.raises(SnapshotError, match="state of feature level 2, known are those up to 1"):
        machine.restore([snapshot_of(above)])
    assert snapshot_of(machine) == before


def later(head: list[object]) -> bytes:
    """Return a snapshot as a later program may write it at level 2: with more in its head, and frames of another kind.
    """
    return forged([*head[:-1], 2, "more"], ["news", 1], END)


@pytest.mark.parametrize("known_level", [1, 2])
@pytest.mark.parametrize("chunk_bytes", [7, 1 << 20])
@pytest.mark.parametrize(
    "snapshot", [forged([*HEAD[:-1], 2], WAITING, RUNNING, END), later(HEAD), forged(HEAD, END, number=FORMAT + 1)],
    ids=["level", "later program", "format"],
)
def test_a_clone_of_a_higher_level_is_refused_by_all_alike(
    known_level: int, chunk_bytes: int, snapshot: bytes,
) -> None:
    machine = cluster(known_level)
    ask(machine, Put("mine", 0, b""))
    begin, *chunks, end = clone_of(snapshot, chunk_bytes=chunk_bytes)
    replies = ask(machine, begin, *chunks, end)
    first = replies.index(NotYet())
    assert replies == [Accepted()] * first + [NotYet()] + [InvalidSnapshot()] * (len(replies) - first - 1)
    assert machine.total("mine").jobs == 1
    assert b"clone" not in snapshot_of(machine)


def test_a_clone_of_a_lower_level_leaves_the_level_of_the_cluster() -> None:
    snapshot = snapshot_of(cluster(1))
    machine = cluster(2)
    ask(machine, RAISE)
    assert ask(machine, *clone_of(snapshot))[-1] == Accepted()
    assert machine.level == 2


def test_a_clone_of_the_clusters_own_level_goes_on_after_a_snapshot() -> None:
    machine = cluster(2)
    ask(machine, RAISE)
    begin, *chunks, end = clone_of(snapshot_of(machine), chunk_bytes=100)
    ask(machine, begin, *chunks[:-1])
    again = restored(snapshot_of(machine))
    assert ask(again, chunks[-1], end) == [Accepted()] * 2


NEW = Done(1)
LEVELS: dict[Any, int] = dispatch.LEVELS


@pytest.mark.parametrize(
    "operation", [
        NEW, Batch((Put("q", 0, b""), NEW), atomic=True), Request(1, 1, b"", 0, False, NEW),
        Request(1, 1, b"", 0, False, Batch((NEW,), atomic=True)),
    ],
    ids=["alone", "batch", "request", "batch in a request"],
)
def test_an_operation_has_the_level_of_what_is_in_it(operation: Operation, monkeypatch: pytest.MonkeyPatch) -> None:
    assert level_of(operation) == 1
    monkeypatch.setitem(LEVELS, Done, 2)
    assert level_of(operation) == 2


def test_other_operations_have_the_first_level(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(LEVELS, Done, 2)
    assert level_of(GetWith(Get(("q", "p"), 5), free=())) == 1
    assert level_of(Batch((Put("q", 0, b"data"),), atomic=False)) == 1


def test_the_program_knows_the_levels_of_all_its_operations_and_tells_what_came_with_each() -> None:
    assert all(FIRST_LEVEL <= row.level <= FEATURE_LEVEL for row in HANDLERS.values())
    described = re.findall(r"^    (\d+)  ", feature_levels.__doc__ or "", re.MULTILINE)
    assert [int(level) for level in described] == [*range(FIRST_LEVEL, FEATURE_LEVEL + 1)]
