"""Laws of every log with sessions (spec/sessions 3)."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import (
    Accepted,
    CloneChunk,
    CloseSession,
    Done,
    Empty,
    Get,
    Handed,
    Later,
    Machine,
    OpenSession,
    Put,
    Reply,
    Request,
    Requested,
    RequestTooOld,
    SessionNotFound,
    Stored,
    Then,
    Tick,
)
from sockpqd.core.limits import REQUEST_WINDOW as WINDOW
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import LAW, LogEntry, ask, restored, run, snapshot_of
from tests.core.helpers.session_logs import DIGESTS, random_session_log, session_entries, session_logs
from tests.core.helpers.snapshot_law import assert_snapshots_continue, assert_some_snapshots_continue, before_clone
from tests.core.model.model import Model

DIGEST = DIGESTS[0]


def request(number: int, operation: Requested, *, keep_waiting: bool = False, session: int = 1) -> Request:
    """Return a request of one part."""
    return Request(session, number, DIGEST, 0, keep_waiting, operation)


@LAW
@given(session_logs())
def test_machine_equals_reference_model_and_so_it_does_from_every_snapshot_on(log: list[LogEntry]) -> None:
    assert_equal_to_model(log, Machine(), Model())
    assert_snapshots_continue(log)


@pytest.mark.parametrize("seed", range(3))
def test_machine_equals_reference_model_over_a_long_log(seed: int) -> None:
    assert_equal_to_model(random_session_log(seed, 400), Machine(), Model(), every=10)


def test_snapshot_at_any_prefix_of_a_long_log_and_the_rest_is_the_whole_log() -> None:
    assert_some_snapshots_continue(random_session_log(7, 1000), every=50)


# --- exactly once

class Repeated(NamedTuple):
    """Commands, each once in order; `repeats` (after which one, how far back); `cuts`: where entries end."""

    commands: list[Requested]
    repeats: list[tuple[int, int]]
    cuts: list[bool]


_queue = st.sampled_from(["a", "b"])
_command: st.SearchStrategy[Requested] = st.one_of(
    st.builds(Put, _queue, st.integers(-1, 1), st.binary(max_size=2), st.none(), st.booleans()),
    st.builds(Get, _queue.map(lambda queue: (queue,))),       # one queue: no dice
    st.builds(Done, st.integers(1, 10)),
    st.builds(Later, st.integers(1, 10)),
)
_repeated = st.builds(
    Repeated,
    st.lists(_command, min_size=1, max_size=30),
    st.lists(st.tuples(st.integers(0, 29), st.integers(0, 10)), max_size=40),
    st.lists(st.booleans(), min_size=70, max_size=70),
)


def opened() -> Machine:
    """Return a machine with one session."""
    machine = Machine()
    machine.apply(1, 0, 0, [OpenSession(0, 60_000)])
    return machine


def final(machine: Machine) -> bytes:
    """Return the state, as if each machine had seen as many entries."""
    machine.apply(10_000, 0, 0, [Tick()])
    return snapshot_of(machine)


@settings(LAW, max_examples=200)
@given(_repeated)
def test_request_is_executed_once_whatever_is_repeated_and_however_entries_are_cut(plan: Repeated) -> None:
    once, again = opened(), opened()
    first: list[Reply] = []
    proposed: list[tuple[int, Request]] = []        # which command
    for at, command in enumerate(plan.commands):
        first += ask(once, request(at + 1, command))
        proposed.append((at, request(at + 1, command)))
        running = {job.id for job in once.running()}
        for behind, back in plan.repeats:
            reply = first[at - back] if behind == at and back <= at else None
            if reply is not None and not (isinstance(reply, Handed) and reply.id not in running):
                proposed.append((at - back, request(at - back + 1, plan.commands[at - back])))
    while proposed:
        length = next((size for size, cut in enumerate(plan.cuts[: len(proposed)], start=1) if cut), len(proposed))
        entry, proposed, plan = proposed[:length], proposed[length:], plan._replace(cuts=plan.cuts[length:])
        assert ask(again, *[one for _, one in entry]) == [first[at] for at, _ in entry]
    assert final(again) == final(once)


@LAW
@given(
    st.lists(st.sampled_from(["repeat", "repeat", "expire", "done", "later", "put", "snapshot"]), max_size=30),
    st.booleans(),
)
def test_repeated_get_gives_the_same_job_while_it_runs_and_at_most_one(steps: list[str], keep_waiting: bool) -> None:
    machine = opened()
    get = request(1, Get(("q",), 100), keep_waiting=keep_waiting)
    now_ms, answer, last_id = 0, None, 0
    for step in ["put", "put", *steps]:
        running = {job.id for job in machine.running()}
        if step == "put":
            ask(machine, Put("q", 0, b"%d" % now_ms))
        elif step == "expire":
            now_ms += 200
            run(machine, Tick(), now_ms=now_ms)
        elif step == "snapshot":
            machine = restored(snapshot_of(machine))
        elif step == "repeat":
            waiting = machine.ready("q")
            (reply,) = ask(machine, get)
            final_answer = isinstance(answer, Empty) and not keep_waiting
            if final_answer or (isinstance(answer, Handed) and answer.id in running):
                assert reply == answer
            elif waiting:
                assert isinstance(reply, Handed)
                assert reply.id == last_id + 1
                last_id = reply.id
            else:
                assert isinstance(reply, Empty)
            answer = reply
        elif isinstance(answer, Handed):
            ask(machine, Done(answer.id) if step == "done" else Later(answer.id))
        assert len(machine.running()) <= 1


@LAW
@given(st.lists(st.integers(-2, 200) | st.integers(60, 70) | st.integers(120, 140), max_size=40))
def test_number_counts_once_and_only_in_the_window(numbers: list[int]) -> None:
    machine = opened()
    used: set[int] = set()
    for number in numbers:
        (reply,) = ask(machine, request(number, Put("q", 0, b"")))
        newest = max(used, default=0)
        if number < 1 or number <= newest - WINDOW:
            assert reply == RequestTooOld()
        else:
            assert reply == Stored()
            used.add(number)
        assert machine.ready("q") == len(used)


# --- the end of a session

@LAW
@given(
    st.sampled_from([1000, 1001, 1016, 5000]),
    st.lists(
        st.tuples(st.sampled_from([1, 15, 16, 500, 984, 999, 1000, 1001, 1015, 1016, 1017, 1100]), st.booleans()),
        max_size=20,
    ),
)
def test_session_ends_its_time_after_its_last_use(ttl_ms: int, steps: list[tuple[int, bool]]) -> None:
    machine = Machine()
    run(machine, OpenSession(0, ttl_ms))
    now_ms = last_ms = 0
    for step_ms, restart in steps:
        now_ms += step_ms
        if restart:
            machine = restored(snapshot_of(machine))
        run(machine, Tick(), now_ms=now_ms)
        assert (machine.next_due_ms() or 10**9) > now_ms        # otherwise Ticks would never end
        if now_ms <= last_ms + ttl_ms:                  # never early
            assert machine.next_due_ms() is not None
        if now_ms < last_ms + ttl_ms + 16 and machine.next_due_ms() is not None:
            assert ask(machine, Get(None, session=1)) == [Empty(False)]
            last_ms = now_ms
        else:                                           # at most 16 ms late
            assert ask(machine, Get(None, session=1)) == [SessionNotFound()]
            assert machine.next_due_ms() is None
            return


@LAW
@given(
    st.lists(st.tuples(st.integers(0, 3), st.sampled_from([None, 50, 5000])), min_size=1, max_size=20),
    st.lists(st.sampled_from(["close", "release", "done", "later", "wait", "snapshot"]), max_size=12),
    st.integers(1, 3),
)
def test_bound_jobs_go_later_once_when_their_session_ends(
    gets: list[tuple[int, int | None]], steps: list[str], session: int
) -> None:
    machine = Machine()
    run(machine, *[OpenSession(0, 1000)] * 3)
    ask(machine, *[Put("q", 0, b"%d" % number) for number in range(len(gets))])
    for bound, expire_ms in gets:
        ask(machine, Get(("q",), expire_ms, Then.LATER, session=bound or None))
    now_ms = done = 0
    for step in steps:
        held = {job.id: job.session for job in machine.running()}
        before = machine.ready("q")
        gone: list[int] = []
        if step == "snapshot":
            machine = restored(snapshot_of(machine))
        elif step in ("done", "later") and held:
            ask(machine, Done(min(held)) if step == "done" else Later(min(held)))
            done += step == "done"
        elif step == "wait":
            now_ms += 600
            run(machine, Tick(), now_ms=now_ms)
        elif step in ("close", "release"):
            (reply,) = ask(machine, CloseSession(session, step == "release"))
            if reply == Accepted():
                gone = [number for number, owner in held.items() if owner == session]
                assert machine.ready("q") == before + (len(gone) if step == "release" else 0)
                assert machine.taken(session) == []
        total = machine.total("q")
        assert total.jobs + total.running == len(gets) - done
    run(machine, Tick(), now_ms=now_ms + 100_000)
    assert all(job.session is None and job.deadline_ms is None for job in machine.running())
    drained = [reply for reply in ask(machine, *[Get(("q",))] * len(gets)) if isinstance(reply, Handed)]
    rest = [job.data for job in machine.running()]
    assert len(drained) <= len(rest) == len(set(rest)) == len(gets) - done


# --- CLONE

@LAW
@given(session_logs(), session_logs(), st.lists(session_entries, max_size=4), st.integers(1, 90), st.booleans())
def test_clone_equals_reference_model(
    source: list[LogEntry], target: list[LogEntry], rest: list[LogEntry], chunk_bytes: int, same_cluster: bool
) -> None:
    machine, model, upload = before_clone(source, target, chunk_bytes, same_cluster)
    end = Request(1, 1000, DIGEST, 0, False, CloneChunk(1, last=True))
    clone = [upload, LogEntry(0, 0, [end]), LogEntry(0, 0, [end])]
    assert_equal_to_model([*clone, *rest], machine, model)
    assert_equal_to_model(rest, restored(snapshot_of(machine)), model)
