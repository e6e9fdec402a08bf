"""Events of running jobs: their progress, and their removal (spec/events 2.1)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    EVENT_TYPES,
    ConfigureQueue,
    Delete,
    DeleteQueue,
    Done,
    Get,
    GetWith,
    Later,
    NotFound,
    OpenSession,
    Operation,
    Put,
    QueueChange,
    Selector,
    Tick,
    Touch,
)
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.rules.test_numbers import Cluster


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.do(Put("q", 0, b"a"), Get(("q",)))
    return cluster


def progress(cluster: Cluster, number: int = 1) -> int | None:
    job = cluster.machine.peek(Selector(number))
    assert job is not None
    return job.progress


def told(cluster: Cluster, *operations: Operation, after_ms: int = 0) -> list[tuple[object, ...]]:
    """Return the events of progress and removal of these operations."""
    machine = cluster.machine
    machine.record(EVENT_TYPES)
    cluster.now_ms += after_ms
    applied = machine.apply(machine.index + 1, cluster.now_ms, 1, operations)
    return [(one.type, one.name, *one.words) for one in applied.events if one.type in ("PROGRESS", "CANCEL")]


def test_progress_is_shown_and_told_when_it_changes(cluster: Cluster) -> None:
    assert progress(cluster) is None
    assert told(cluster, Touch(1)) == []
    assert told(cluster, Touch(1, progress=0)) == [("PROGRESS", "q", 1, 0)]
    assert told(cluster, Touch(1, progress=40), Touch(1, progress=40), Touch(1, 9000), Touch(1, progress=30)) == [
        ("PROGRESS", "q", 1, 40), ("PROGRESS", "q", 1, 30)]
    cluster.machine = restored(snapshot_of(cluster.machine))
    assert progress(cluster) == 30
    assert told(cluster, Touch(7, progress=1)) == []
    assert cluster.do(Touch(7, progress=1)) == [NotFound()]


def test_the_next_hand_out_begins_without(cluster: Cluster) -> None:
    cluster.do(Touch(1, progress=100), Later(1), Get(("q",)))
    assert progress(cluster, 2) is None


@pytest.mark.parametrize(("operation", "events"), [
    (Delete(Selector(1)), [("CANCEL", "q", 1)]),
    (Delete(Selector(1), own=True), []),
    (DeleteQueue("q", force=True), [("CANCEL", "q", 1), ("CANCEL", "q", 2)]),
    (Done(1), []),
])
def test_the_removal_of_a_running_job_is_told(
    cluster: Cluster, operation: Operation, events: list[tuple[object, ...]],
) -> None:
    cluster.do(Put("q", 0, b"b"), Put("q", 0, b"c"), Get(("q",)))
    assert told(cluster, operation) == events


def test_so_is_the_end_of_a_bound_queue(cluster: Cluster) -> None:
    cluster.do(
        OpenSession(7, 1_000, "", ""), ConfigureQueue("mine", QueueChange(), create=True, session=1),
        Put("mine", 0, b""),
    )
    cluster.do(GetWith(Get(("mine",))))
    assert told(cluster, Tick(), after_ms=2_000) == [("CANCEL", "mine", 2)]
