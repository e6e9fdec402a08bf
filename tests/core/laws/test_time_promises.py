"""Promises to clients in every log: checked on the machine alone, not with the model."""

from __future__ import annotations

from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from sockpqd.core import (
    Aborted,
    Batch,
    Due,
    Empty,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    JobState,
    JobView,
    Machine,
    Operation,
    Put,
    PutWith,
    Reply,
    Return,
    Stored,
    Tick,
)
from tests.core.helpers.logs import LAW, LogEntry, ask, play, restored, run, snapshot_of
from tests.core.helpers.time_logs import batch, time_logs, time_operations

STATES = (JobState.READY, JobState.DELAYED, JobState.RUNNING)


def given_out(reply: Reply) -> list[Handed]:
    """Return the jobs handed out by a reply."""
    if isinstance(reply, HandedMany):
        return list(reply.jobs)
    return [reply] if isinstance(reply, Handed) else []


@settings(LAW, max_examples=200)      # with so much to draw logs are shorter by a fifth
@given(time_logs, batch, st.lists(time_operations, max_size=6), st.integers(0, 400), st.booleans())
def test_what_holds_for_every_log(
    log: list[LogEntry], tried: Batch, operations: list[Operation], now_ms: int, first: bool,
) -> None:
    """One test, as it takes longer to draw a log than to look at it."""
    assert_no_two_unfinished_jobs_have_one_key_and_counts_are_those_of_what_is_seen(log)
    assert_limits_and_pauses_hold_and_finq_and_fini_mean_that_nothing_is_left(log)
    assert_aborted_batch_changes_nothing_but_index_and_clock(log, tried, now_ms)
    assert_whoever_waits_is_told(log, operations)
    assert_ready_is_what_gets_are_given_and_undone_hand_outs_leave_all_as_it_was(log, first)


def assert_no_two_unfinished_jobs_have_one_key_and_counts_are_those_of_what_is_seen(log: list[LogEntry]) -> None:
    """Play the log, and check all queues after each entry."""
    machine = Machine()
    for _ in play(machine, log):
        for queue in machine.queue_names(""):
            seen = {state: machine.peek_queue(queue, state, 1000) for state in JobState}
            keys = Counter(job.key for state in STATES for job in seen[state] if job.key is not None)
            assert set(keys.values()) <= {1}
            counts = machine.counts(queue)
            assert counts is not None
            assert [len(seen[state]) for state in JobState] == [
                counts.ready, counts.delayed, counts.running, counts.dead, counts.buried,
            ]
            assert machine.unfinished(queue) == any(seen[state] for state in STATES)


def assert_limits_and_pauses_hold_and_finq_and_fini_mean_that_nothing_is_left(log: list[LogEntry]) -> None:
    """Play the log, and check the reply to each operation."""
    machine = Machine()
    for entry in log:
        for operation in entry.operations:
            running = {job.id: job for job in machine.running()}
            (reply,) = ask(machine, operation, now_ms=entry.now_ms, seed=entry.seed)
            # A GET NUMBER takes its job regardless of pauses and limits.
            if isinstance(operation, Get) or (isinstance(operation, GetWith) and operation.number is None):
                assert_allowed(machine, given_out(reply))
            if isinstance(reply, Finished) and (number := getattr(operation, "id", 0)) in running:
                job = running[number]
                assert reply.queue_done == (not machine.unfinished(job.queue))
                assert not reply.item_done or not machine.unfinished(None, job.item)


def assert_allowed(machine: Machine, handed: list[Handed]) -> None:
    """Assert that none of these was handed out beyond a limit or from a paused queue."""
    for job in handed:
        queue = machine.queue_settings(job.queue)
        if queue is None:
            continue
        running = [other for other in machine.running() if other.queue == job.queue]
        assert not queue.paused_out
        assert not 0 < queue.limit < len(running)
        if job.item is not None:
            assert not 0 < queue.item_limit < len([one for one in running if one.item == job.item])


def assert_aborted_batch_changes_nothing_but_index_and_clock(log: list[LogEntry], tried: Batch, now_ms: int) -> None:
    """Play the log, then compare the state after an aborted batch with the state after a Tick."""
    machine = Machine()
    for _ in play(machine, log):
        pass
    other = restored(snapshot_of(machine))
    applied = run(machine, Batch(tried.operations, atomic=True), now_ms=now_ms)
    ticked = run(other, Tick(), now_ms=now_ms)
    if isinstance(applied.replies[0], Aborted):
        assert snapshot_of(machine) == snapshot_of(other)
        assert applied.effects == ticked.effects
        assert list(play(machine, log)) == list(play(other, log))
        assert snapshot_of(machine) == snapshot_of(other)


@LAW
@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(0, 5), st.integers(-2, 40), st.booleans()), max_size=30))
def test_job_is_handed_out_at_its_time_and_not_before(plan: list[tuple[str, int, int, bool]]) -> None:
    machine = Machine()
    times: dict[bytes, int] = {}
    now_ms = 0
    for number, (queue, step_ms, delay_ms, absolute) in enumerate([*plan, ("a", 100, 0, False)]):
        now_ms += step_ms
        data = b"%d" % number
        when = Due(0, now_ms + delay_ms) if absolute else Due(max(0, delay_ms))
        put = PutWith(Put(queue, 0, data), when)
        reply, *gets = ask(machine, put, *[Get(None)] * (len(plan) + 2), now_ms=now_ms)
        assert reply == Stored()
        times[data] = now_ms + max(0, delay_ms)
        given = {job.data for get in gets for job in given_out(get)}
        assert given == {data for data, time_ms in times.items() if time_ms <= now_ms}
        for data in given:
            del times[data]
        due_ms, first_ms = machine.next_due_ms(), min(times.values(), default=None)
        assert (due_ms is None) == (first_ms is None)
        assert 0 <= (due_ms or 0) - (first_ms or 0) < 16        # a Tick may come a little late, an entry never early
    assert not times


def assert_whoever_waits_is_told(log: list[LogEntry], operations: list[Operation]) -> None:
    """Assert that a Get which finds nothing is asked again only when the effects say so, and misses nothing by that."""
    machine = Machine()
    for _ in play(machine, log):
        pass
    clock_ms = machine.clock_ms
    names = [*machine.queue_names(""), "a", "b", "a_dead", "b_dead"]
    empty = {name for name in names if not machine.ready(name)}
    had = {name for name in names if machine.unfinished(name)}
    applied = run(machine, Tick(), *operations, now_ms=clock_ms + 10)
    if applied.effects.restored:
        return
    for name in empty:
        assert not machine.ready(name) or name in {*applied.effects.ready, *applied.effects.reopened}
    for name in had:
        assert machine.unfinished(name) or name in applied.effects.ended


def assert_ready_is_what_gets_are_given_and_undone_hand_outs_leave_all_as_it_was(
    log: list[LogEntry], first: bool,
) -> None:
    """Looked at behind the log. `first`: a hand-out is undone by LATER FIRST, else by RETURN."""
    machine = Machine()
    for _ in play(machine, log):
        pass
    snapshot = snapshot_of(machine)
    for queue in sorted(machine.queue_names("")):
        other = restored(snapshot)
        other.apply(other.index + 1, 0, 0, [])
        ready = other.ready(queue)
        assert (queue in set(other.offering(None, None))) == (ready > 0)
        assert ready == 0 or queue in other.nonempty()
        (reply,) = ask(other, Get((queue,)))
        assert isinstance(reply, Handed) == (ready > 0)
        if ready == 0:
            assert reply == Empty(other.unfinished(queue))
    run(machine, Tick(), now_ms=10_000)
    run(machine, Tick(), now_ms=10_000)
    before = waiting(machine, counted=not first)
    taken = [job for reply in ask(machine, *[Get(None)] * 5) for job in given_out(reply)]
    for job in taken:
        ask(machine, End(job.id, How.LATER, first=True, yielded=True) if first else Return(job.id))
    assert waiting(machine, counted=not first) == before


def waiting(machine: Machine, *, counted: bool) -> dict[str, list[JobView]]:
    """READY jobs of all queues; not `counted`: without the counts and times of the hand-outs of numbered ones."""
    return {
        queue: [job if counted else structs.replace(job, counts=None, life=None)
                for job in machine.peek_queue(queue, JobState.READY, 1000)]
        for queue in machine.queue_names("")
    }
