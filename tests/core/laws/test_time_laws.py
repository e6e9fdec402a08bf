"""What holds for every log with times, keys, batches, dead letters and settings of queues."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core import (
    Batch,
    Change,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSessionFirst,
    DeleteQueue,
    Get,
    Lead,
    Machine,
    OpenSession,
    Put,
    PutNumbered,
    PutWith,
    Selector,
)
from core.fair import book
from core.fair.shelves import FEW
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import CLUSTER, LAW, MEMBERS, LogEntry, lead, play, restored, snapshot_of
from tests.core.helpers.time_logs import asked_time_logs, random_time_log, time_entries, time_logs
from tests.core.model.model import Model


@settings(LAW, max_examples=250)
@given(time_logs)
def test_machine_equals_reference_model(log: list[LogEntry]) -> None:
    assert_equal_to_model(log, Machine(), Model())


def test_no_release_of_a_numbered_job_is_counted_when_its_session_is_closed() -> None:
    """Its worker says nothing of the job."""
    put = PutNumbered(PutWith(Put("q", 0, b"")), True)
    assert_equal_to_model([
        LogEntry(0, 0, [OpenSession(7, 1000), put, Get(("q",), session=1), CloseSessionFirst(1)]),
    ], Machine(), Model())


@settings(LAW, max_examples=150)
@given(asked_time_logs)
def test_machine_equals_reference_model_when_requests_are_repeated(log: list[LogEntry]) -> None:
    assert_equal_to_model(log, Machine(), Model())


@pytest.mark.parametrize("few", [FEW, 1], ids=["few groups", "many groups"])
@pytest.mark.parametrize("seed", range(3))
def test_machine_equals_reference_model_over_a_long_log(
    seed: int, few: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(book, "FEW", few)
    assert_equal_to_model(random_time_log(seed, 300), Machine(), Model(), every=10)


def assert_snapshots_continue(log: list[LogEntry]) -> None:
    """From a snapshot at every prefix the rest of the log leads to the same replies and bytes."""
    whole = Machine()
    prefixes = [snapshot_of(whole)]
    replies = []
    for answered in play(whole, log):
        replies.append(answered)
        prefixes.append(snapshot_of(whole))
    for length, prefix in enumerate(prefixes):
        machine = restored(prefix)
        assert snapshot_of(machine) == prefix
        assert list(play(machine, log[length:])) == replies[length:]
        assert snapshot_of(machine) == prefixes[-1]


@LAW
@given(time_logs)
def test_snapshot_at_every_prefix_and_the_rest_is_the_whole_log(log: list[LogEntry]) -> None:
    assert_snapshots_continue(log)


@LAW
@given(asked_time_logs)
def test_snapshot_at_every_prefix_of_repeated_requests_and_the_rest_is_the_whole_log(log: list[LogEntry]) -> None:
    assert_snapshots_continue(log)


def test_snapshot_at_any_prefix_of_a_long_log_and_the_rest_is_the_whole_log() -> None:
    log = random_time_log(7, 1000)
    whole = Machine()
    prefixes = {}
    for length, _ in enumerate(play(whole, log), start=1):
        if length % 50 == 0:
            prefixes[length] = snapshot_of(whole)
    for length, prefix in prefixes.items():
        machine = restored(prefix)
        for _ in play(machine, log[length:]):
            pass
        assert snapshot_of(machine) == snapshot_of(whole)


@LAW
@given(time_logs, time_logs, st.lists(time_entries, max_size=5), st.integers(20, 90), st.booleans())
def test_clone_equals_reference_model(
    source: list[LogEntry], target: list[LogEntry], rest: list[LogEntry], chunk_bytes: int, same_cluster: bool
) -> None:
    machine, model = Machine(), Model()
    other, other_model = Machine(), Model()
    for replica in (machine, model):
        replica.apply(1, 0, 0, [lead()])
    for replica in (other, other_model):
        replica.apply(1, 0, 0, [Lead("n1", 1, MEMBERS, CLUSTER if same_cluster else b"another clusters", 0)])
    assert_equal_to_model(source, other, other_model)
    assert_equal_to_model(target, machine, model)
    assert other_model.level <= model.level         # no draw raises it; what is refused: core/handlers/test_levels.py
    snapshot = snapshot_of(other)
    model.known_bytes[snapshot] = other_model
    chunks = [CloneChunk(1, snapshot[start : start + chunk_bytes]) for start in range(0, len(snapshot), chunk_bytes)]
    assert_equal_to_model([LogEntry(0, 0, [CloneBegin(1, len(snapshot)), *chunks])], machine, model)
    assert_equal_to_model([LogEntry(0, 0, [CloneEnd(1)]), *rest], machine, model)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)


def test_a_job_that_is_changed_knows_at_once_which_of_its_items_are_finished() -> None:
    put = PutWith(Put("b", 1, b""), after=("x", "y"), key="k")
    change = Batch((Change(Selector(0, "b", "k"), priority=2),), False)
    log = [
        LogEntry(0, 0, [Put("a", 0, b"", "x"), Put("c", 0, b"", "y"), put]),
        LogEntry(0, 0, [DeleteQueue("a", True), change]), LogEntry(0, 0, []),
    ]
    machine, model = Machine(), Model()
    for replica in (machine, model):
        replica.apply(1, 0, 0, [lead()])
    assert_equal_to_model(log, machine, model)
