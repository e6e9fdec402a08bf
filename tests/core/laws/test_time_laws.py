"""Laws of every log with times, keys, batches, dead letters and settings of queues."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.core import (
    Batch,
    Change,
    CloneChunk,
    CloseSession,
    DeleteQueue,
    Get,
    Later,
    Machine,
    OpenSession,
    Put,
    PutWith,
    Selector,
)
from sockpqd.core.fair import first_jobs
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import LAW, LogEntry, lead, restored, snapshot_of
from tests.core.helpers.rankings import RANKING_NAMES, RANKINGS
from tests.core.helpers.snapshot_law import assert_snapshots_continue, assert_some_snapshots_continue, before_clone
from tests.core.helpers.time_logs import asked_time_logs, random_time_log, time_entries, time_logs
from tests.core.model.model import Model


@LAW
@given(time_logs)
def test_machine_equals_reference_model_and_so_it_does_from_every_snapshot_on(log: list[LogEntry]) -> None:
    assert_equal_to_model(log, Machine(), Model())
    assert_snapshots_continue(log)


def test_no_release_of_a_numbered_job_is_counted_when_its_session_is_closed() -> None:
    """Its worker reports nothing about the job."""
    put = PutWith(Put("q", 0, b""), number=True)
    assert_equal_to_model([
        LogEntry(0, 0, [OpenSession(7, 1000), put, Get(("q",), session=1), CloseSession(1, True, True)]),
    ], Machine(), Model())


@LAW
@given(asked_time_logs)
def test_the_same_when_requests_are_repeated(log: list[LogEntry]) -> None:
    assert_equal_to_model(log, Machine(), Model())
    assert_snapshots_continue(log)


@pytest.mark.parametrize(("few", "wide"), RANKINGS, ids=RANKING_NAMES)
@pytest.mark.parametrize("seed", range(3))
def test_machine_equals_reference_model_over_a_long_log(
    seed: int, few: int, wide: int, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(first_jobs, "FEW", few)
    monkeypatch.setattr(first_jobs, "WIDE", wide)
    assert_equal_to_model(random_time_log(seed, 300), Machine(), Model(), every=10)


def test_snapshot_at_any_prefix_of_a_long_log_and_the_rest_is_the_whole_log() -> None:
    assert_some_snapshots_continue(random_time_log(7, 1000), every=50)


@LAW
@given(time_logs, time_logs, st.lists(time_entries, max_size=5), st.integers(20, 90), st.booleans())
def test_clone_equals_reference_model(
    source: list[LogEntry], target: list[LogEntry], rest: list[LogEntry], chunk_bytes: int, same_cluster: bool
) -> None:
    machine, model, upload = before_clone(source, target, chunk_bytes, same_cluster)
    assert_equal_to_model([upload, LogEntry(0, 0, [CloneChunk(1, last=True)]), *rest], machine, model)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)


def test_a_numbered_job_may_come_from_a_cluster_whose_clock_is_ahead() -> None:
    """A cluster keeps its clock when it takes over a state: then the last hand-out is before the first."""
    source = [
        LogEntry(9000, 0, [PutWith(Put("q", 0, b""), number=True), Get(("q",))]), LogEntry(0, 0, [Later(1)]),
    ]
    machine, model, upload = before_clone(source, [LogEntry(1000, 0, [])], 90, same_cluster=False)
    assert_equal_to_model(
        [upload, LogEntry(0, 0, [CloneChunk(1, last=True)]), LogEntry(0, 0, [Get(("q",))])], machine, model,
    )
    (job,) = machine.running()
    assert_equal_to_model([LogEntry(500, 0, [Later(job.id)])], machine, model)
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
