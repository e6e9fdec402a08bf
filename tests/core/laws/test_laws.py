"""Laws of every log."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.core import (
    CloneChunk,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    Later,
    Lead,
    Machine,
    NotFound,
    Put,
    Reply,
    Return,
    Stored,
    Then,
)
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import LAW, MEMBERS, LogEntry, entries, lead, logs, play, random_log, restored, snapshot_of
from tests.core.helpers.snapshot_law import assert_snapshots_continue, assert_some_snapshots_continue
from tests.core.model.model import Model


def places(replies: list[Reply]) -> list[tuple[str, bytes]]:
    """Return queue and data of the jobs handed out."""
    return [(reply.queue, reply.data) for reply in replies if isinstance(reply, Handed)]


@LAW
@given(logs, st.integers(0, 2**64 - 1))
def test_what_holds_for_every_log(log: list[LogEntry], seed: int) -> None:
    """One test, as it takes longer to draw a log than to look at it."""
    assert_equal_to_model(log, Machine(), Model())
    assert_snapshots_continue(log)
    assert_every_job_put_is_waiting_running_or_ended(log)
    assert_ids_rise_and_are_never_reused(log)
    assert_a_running_id_belongs_to_one_job_until_it_ends(log)
    assert_returned_jobs_come_again_in_the_same_order(log, seed)
    assert_finq_and_fini_mean_that_nothing_is_left(log)


@pytest.mark.parametrize("seed", range(3))
def test_machine_equals_reference_model_over_a_long_log(seed: int) -> None:
    assert_equal_to_model(random_log(seed, 400), Machine(), Model(), every=10)


def test_snapshot_at_any_prefix_of_a_long_log_and_the_rest_is_the_whole_log() -> None:
    assert_some_snapshots_continue(random_log(7, 1500), every=100)


def assert_every_job_put_is_waiting_running_or_ended(log: list[LogEntry]) -> None:
    """Assert that a job exists once, and that its end ends it."""
    machine = Machine()
    put: Counter[bytes] = Counter()
    ended: Counter[bytes] = Counter()
    given_out: dict[int, bytes] = {}
    for entry in log:
        before = {job.id: job for job in machine.running()}
        # Each job carries a number of its own, so that it can be told from the others.
        operations = [
            Put(op.queue, op.priority, b"%d.%d" % (machine.index, place), op.item, op.new_item)
            if isinstance(op, Put)
            else op
            for place, op in enumerate(entry.operations)
        ]
        replies = machine.apply(machine.index + 1, entry.now_ms, entry.seed, operations).replies
        called = set()      # ids of hand-outs that a client ended
        for operation, reply in zip(operations, replies, strict=True):
            if isinstance(operation, Put) and isinstance(reply, Stored):
                put[operation.data] += 1
            elif isinstance(operation, Done | Later | Return) and not isinstance(reply, NotFound):
                called.add(operation.id)
                if isinstance(reply, Finished):
                    ended[given_out[operation.id]] += 1
            elif isinstance(reply, Handed):
                given_out[reply.id] = reply.data
        running = {job.id for job in machine.running()}
        for job in before.values():
            if job.id not in running and job.id not in called and job.then is Then.DONE:
                ended[job.data] += 1
    unfinished = Counter(job.data for job in machine.running())
    for reply in next(play(machine, [LogEntry(0, 0, [Get(None)] * machine.total(None).jobs)])):
        assert isinstance(reply, Handed)
        unfinished[reply.data] += 1
    assert ended + unfinished == put
    assert set(put.values()) <= {1}


def assert_ids_rise_and_are_never_reused(log: list[LogEntry]) -> None:
    """Assert that each hand-out has the next id."""
    replies = [reply for answered in play(Machine(), log) for reply in answered]
    ids = [reply.id for reply in replies if isinstance(reply, Handed)]
    assert ids == list(range(1, len(ids) + 1))


def assert_a_running_id_belongs_to_one_job_until_it_ends(log: list[LogEntry]) -> None:
    """Assert that the data of an id never change."""
    machine = Machine()
    known: dict[int, bytes] = {}
    for _ in play(machine, log):
        running = machine.running()
        ids = [job.id for job in running]
        assert ids == sorted(set(ids))
        for job in running:
            assert known.setdefault(job.id, job.data) == job.data


@LAW
@given(st.lists(st.integers(-3, 3), max_size=40))
def test_jobs_come_by_priority_then_in_order_of_arrival(priorities: list[int]) -> None:
    machine = Machine()
    puts = [Put("q", priority, b"%d" % number) for number, priority in enumerate(priorities)]
    machine.apply(1, 0, 0, puts)
    replies = machine.apply(2, 0, 0, [Get(("q",))] * len(puts)).replies
    expected = sorted(puts, key=lambda put: -put.priority)      # stable
    assert [reply.data for reply in replies if isinstance(reply, Handed)] == [put.data for put in expected]


def assert_returned_jobs_come_again_in_the_same_order(log: list[LogEntry], seed: int) -> None:
    """Assert that a RETURN leaves no trace in the order, and wakes waiting clients."""
    machine, other = Machine(), Machine()
    for _ in play(machine, log):
        pass
    other.restore(machine.snapshot())
    jobs = machine.total(None).jobs
    drain = LogEntry(0, seed, [Get(None)] * jobs)
    (taken,) = play(machine, [drain])
    for reply in taken:
        assert isinstance(reply, Handed)
        effects = machine.apply(machine.index + 1, 0, 0, [Return(reply.id)]).effects
        assert list(effects.ready) == [reply.queue]
        assert list(effects.ready_items) == ([] if reply.item is None else [(reply.queue, reply.item)])
    (again,) = play(machine, [drain])
    (expected,) = play(other, [drain])
    assert places(again) == places(expected)


def assert_finq_and_fini_mean_that_nothing_is_left(log: list[LogEntry]) -> None:
    """Assert that a DONE reports correctly whether it was the last of its queue and of its item."""
    machine = Machine()
    for entry in log:
        for operation in entry.operations or ():
            running = {job.id: job for job in machine.running()}
            (reply,) = machine.apply(machine.index + 1, 0, entry.seed, [operation]).replies
            if isinstance(reply, Finished):
                assert isinstance(operation, Done)
                job = running[operation.id]
                assert reply.queue_done == (machine.total(job.queue).queues == 0)
                if job.item is not None:
                    (rest,) = machine.apply(machine.index + 1, 0, 0, [Get(None, item=job.item)]).replies
                    assert reply.item_done == (rest == Empty(False))


@LAW
@given(logs, logs, st.lists(entries, max_size=5), st.integers(1, 60), st.booleans())
def test_clone_equals_reference_model(
    source: list[LogEntry], target: list[LogEntry], rest: list[LogEntry], chunk_bytes: int, same_cluster: bool
) -> None:
    machine, model = Machine(), Model()
    other, other_model = Machine(), Model()
    cluster = b"sixteen bytes id" if same_cluster else b"another clusters"
    for replica in (machine, model):
        replica.apply(1, 0, 0, [lead()])
    for replica in (other, other_model):
        replica.apply(1, 0, 0, [Lead("n1", 1, MEMBERS, cluster, 0)])
    assert_equal_to_model(source, other, other_model, every=len(source) + 1)
    assert_equal_to_model(target, machine, model, every=len(target) + 1)
    assert other_model.level <= model.level         # no draw raises it; what is refused: core/handlers/test_levels.py
    snapshot = snapshot_of(other)
    model.known_bytes[snapshot] = other_model
    chunks = [CloneChunk(1, snapshot[start : start + chunk_bytes]) for start in range(0, len(snapshot), chunk_bytes)]
    assert_equal_to_model([LogEntry(0, 0, [CloneChunk(1, total_bytes=len(snapshot)), *chunks])], machine, model)
    machine = restored(snapshot_of(machine))        # a snapshot in the middle of a clone loses nothing
    assert_equal_to_model([LogEntry(0, 0, [CloneChunk(1, last=True)]), *rest], machine, model)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
