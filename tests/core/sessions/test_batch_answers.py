"""Answers to batches do not fill the memory: an owner's least recently used sessions forget theirs (spec/sessions 2.3).
"""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Batch,
    CloseSession,
    End,
    Get,
    GetWith,
    HandedMany,
    How,
    Machine,
    NotFound,
    OpenSession,
    Put,
    PutWith,
    Reply,
    Request,
    Requested,
    RequestTooOld,
    Results,
    limits,
)
from sockpqd.core.sessions.session import OWN_REPLY_BYTES, SHARED_REPLY_BYTES
from tests.core.helpers.logs import ask, restored, run, snapshot_of

ENDS = 100          # of one batch
SIZE = ENDS * SHARED_REPLY_BYTES
NONE_RUNS = Results((NotFound(),) * ENDS)


@pytest.fixture(autouse=True)
def little_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let only eight batches of an owner be remembered."""
    monkeypatch.setattr(limits, "BATCH_ANSWERS_MAX", 8 * SIZE)


def done(session: int, number: int, first: int = 1000) -> Request:
    return Request(session, number, b"d%d" % first, 0, False, End(tuple(range(first, first + ENDS)), How.DONE))


def asked(machine: Machine, operation: Requested, now_ms: int) -> Reply:
    (reply,) = ask(machine, operation, now_ms=now_ms)
    return reply


def opened(count: int, address: str = "10.0.0.1") -> Machine:
    machine = Machine()
    run(machine, *[OpenSession(7, 900_000, "", address, 100)] * count)
    return machine


def held(machine: Machine, address: str = "10.0.0.1") -> int:
    """Return the bytes that the owner's sessions are counted with."""
    owner = machine._state.sessions.owners._owners.get(("", address))
    assert owner is not None
    sessions = machine._state.sessions.by_number
    assert owner.batch_bytes == sum(one.batch_bytes for one in sessions.values() if one.address == address)
    assert [*owner.with_batches] == [*dict.fromkeys(owner.with_batches)]
    assert set(owner.with_batches) == {
        one.number for one in sessions.values() if one.batch_bytes and one.address == address}
    for one in sessions.values():
        assert one.batch_bytes == sum(answered.batch_bytes() for answered in one.requests.values())
    return owner.batch_bytes


def test_the_least_recently_used_sessions_forget_theirs() -> None:
    machine = opened(9)
    for session in range(1, 9):
        assert asked(machine, done(session, 1), session) == NONE_RUNS
    assert held(machine) == 8 * SIZE
    assert asked(machine, done(1, 1), 50) == NONE_RUNS       # repeated: used later than all others
    assert asked(machine, done(9, 1), 51) == NONE_RUNS
    assert held(machine) == 7 * SIZE                # an eighth of the limit is free
    assert [asked(machine, done(session, 1), 52) for session in (2, 3)] == [RequestTooOld()] * 2
    assert [asked(machine, done(session, 1), 52) for session in (1, 4, 9)] == [NONE_RUNS] * 3
    assert asked(machine, done(2, 2), 53) == NONE_RUNS       # it goes on with its next number


def test_a_copy_remembers_and_forgets_the_same() -> None:
    machine = opened(12)
    for session in range(1, 13):
        run(machine, done(session, 1), now_ms=session)
    copy = restored(snapshot_of(machine))
    assert held(copy) == held(machine)
    for session in (3, 5, 12, 7):
        for one in (machine, copy):
            run(one, done(session, 2, 2000), now_ms=20 + session)
    assert snapshot_of(copy) == snapshot_of(machine)
    assert held(copy) == held(machine)


def test_one_session_alone_keeps_a_window_of_them() -> None:
    machine = opened(1)
    for number in range(1, 71):
        run(machine, done(1, number), now_ms=number)
    assert held(machine) == 64 * SIZE
    assert asked(machine, done(1, 7), 80) == NONE_RUNS
    run(machine, done(1, 140), now_ms=81)
    assert held(machine) == SIZE
    run(machine, done(1, 300), now_ms=82)
    assert held(machine) == SIZE


def test_others_and_small_answers_are_kept() -> None:
    machine = opened(1, "10.0.0.2")
    run(machine, *[OpenSession(7, 900_000, "", "10.0.0.1", 100)] * 20)
    run(machine, done(1, 1), now_ms=1)
    put = Request(2, 1, b"p", 0, False, PutWith(Put("q", 0, b"x"), number=True))
    stored = asked(machine, put, 1)
    run(machine, done(2, 2), now_ms=1)
    for session in range(3, 21):
        run(machine, done(session, 1), now_ms=session)
    assert asked(machine, done(2, 2), 50) == RequestTooOld()
    assert asked(machine, put, 50) == stored
    assert asked(machine, done(1, 1), 50) == NONE_RUNS


def test_what_a_session_that_ends_remembered_is_counted_no_longer() -> None:
    machine = opened(5)
    for session in range(1, 6):
        run(machine, done(session, 1), now_ms=session)
    run(machine, CloseSession(5, 7), CloseSession(2, 7), now_ms=9)
    assert held(machine) == 3 * SIZE


def test_replies_of_their_own_and_hand_outs_count_for_more() -> None:
    machine = opened(1)
    puts = Batch(tuple(PutWith(Put("q", 0, b"x"), number=True) for _ in range(10)), False)
    run(machine, Request(1, 1, b"p", 0, False, puts), now_ms=1)
    assert held(machine) == 9 * OWN_REPLY_BYTES + 10 * SHARED_REPLY_BYTES
    taken = asked(machine, Request(1, 2, b"g", 0, False, GetWith(Get(("q",), 60_000), count=10)), 2)
    assert isinstance(taken, HandedMany)
    assert held(machine) > 9 * OWN_REPLY_BYTES + 10 * SHARED_REPLY_BYTES
