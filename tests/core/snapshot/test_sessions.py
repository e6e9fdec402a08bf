"""Sessions in snapshots: the bytes, and what is not accepted as such."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sockpqd.core import (
    Accepted,
    AttachSession,
    CloneChunk,
    CloseSession,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    InvalidSnapshot,
    Later,
    Machine,
    NotFound,
    OpenSession,
    Put,
    Request,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    SnapshotError,
    Stored,
    SwitchService,
    Tick,
    TouchSession,
)
from tests.core.handlers.test_clone import clone_of
from tests.core.helpers.forge import forged
from tests.core.helpers.forged_frames import END, HEAD, RUNNING, WAITING, changed
from tests.core.helpers.logs import LAW, ask, play, restored, run, snapshot_of
from tests.core.helpers.session_logs import random_session_log
from tests.core.snapshot.test_snapshot import refuse

# The clock of HEAD is 1000, ids up to 9 are given, 1 and 2 are running.
D1, D2 = b"digest 1", b"digest 2"
REQUESTS: list[Any] = [
    [3, D1, [[0, ["stored", None]]]],
    [4, D1, [[0, ["stored", "i1"]], [1, ["handed", 2]]]],
    [5, D2, [[0, ["handed", 7]]]],
    [6, D2, []],
    [7, D1, [[0, ["empty", True]], [1, ["empty", False]]]],
    [8, D1, [[-3, ["finished", True, False]], [2**64 - 1, ["plain", "accepted"]]]],
    [66, D1, [[0, ["plain", "not found"]], [1, ["plain", "invalid"]], [2, ["plain", "no session"]]]],
]
TABLE: list[Any] = ["sessions", 9, 3]
SESSIONS: list[Any] = [
    "session",
    [
        [2, 2**64 - 1, 60_000, 61_000, False, False, REQUESTS, [1], "", "", 1000, False],
        [3, 0, 1000, 1500, True, False, [], [], "mailer", "10.0.0.1", 500, False],
        [8, 5, 1000, 900, False, True, [], [2], "", "2001:db8::/64", 0, True],
    ],
]


@pytest.fixture
def machine() -> Machine:
    """Return a machine with a session to lose."""
    machine = Machine()
    ask(machine, OpenSession(1, 1000), Put("mine", 0, b""), Get(("mine",), session=1))
    return machine


def session(at: int, value: object) -> list[Any]:
    """Return a frame with one session that has another value at one place."""
    return ["session", [changed([2, 7, 60_000, 61_000, False, False, [], [1], "", "", 1000, False], at, value)]]


def of_requests(*requests: object) -> list[Any]:
    """Return a frame with one session that has these requests."""
    return session(6, list(requests))


def test_restored_sessions_have_everything() -> None:
    snapshot = forged(HEAD, WAITING, RUNNING, TABLE, SESSIONS, END)
    machine = restored(snapshot)
    assert snapshot_of(machine) == snapshot
    assert machine.taken(2) == [1]
    assert machine.taken(8) == []
    assert machine.next_due_ms() == 912
    asked = [
        Request(2, number, digest, part, False, Later(1))
        for number, digest, answers in REQUESTS
        for part, _ in answers
    ]
    copy = restored(snapshot)
    assert ask(copy, AttachSession(2, 2**64 - 1), AttachSession(3, 0), AttachSession(8, 5), OpenSession(6, 1000)) == [
        SessionAttached(60_000, 66), SessionAttached(1000, 0), SessionNotFound(),
        SessionOpened("9_0000000000000006", 1000),
    ]
    run(copy, SwitchService(True))
    run(copy, Tick())
    assert copy.ready("r") == 1         # the session that was ending has ended
    assert ask(machine, *asked) == [
        Stored(), Stored("i1"), Handed(2, "r", 0, b"d", "x"), Accepted(), Empty(True), Empty(False),
        Finished(True, False), Accepted(), NotFound(), InvalidSnapshot(), SessionNotFound(),
    ]


def test_no_frame_when_there_never_was_a_session() -> None:
    machine = Machine()
    ask(machine, TouchSession(1), Request(1, 1, b"", 0, False, Done(1)))
    assert b"session" not in snapshot_of(machine)
    ask(machine, OpenSession(0, 1000), CloseSession(1, False))
    assert b"session" in snapshot_of(machine)       # its number is not given again


def test_equal_states_give_equal_bytes_whatever_led_to_them() -> None:
    one, two = Machine(), Machine()
    run(one, OpenSession(1, 1000))
    run(two, OpenSession(1, 1000))
    puts = [Request(1, number, D1, part, False, Put("q", 0, b"")) for number in range(5, 40) for part in (0, 1, 2)]
    ask(one, *puts, *[Get(("q",), session=1)] * 3, TouchSession(1), now_ms=500)
    ask(two, *puts[::-1], TouchSession(1), *[Get(("q",), session=1)] * 3, now_ms=500)
    three = restored(snapshot_of(two))
    for machine in (one, two, three):
        run(machine, Tick(), now_ms=1400)       # when the first two look at the session and find that it was used
    assert snapshot_of(one) == snapshot_of(two) == snapshot_of(three)


def test_many_sessions_and_answers_are_restored_in_several_frames() -> None:
    machine = Machine()
    ask(machine, *[OpenSession(number, 1000) for number in range(1500)])
    for number in range(1, 20):
        ask(machine, *[Request(session, number, D1, 0, False, Put("q", 0, b"")) for session in range(1, 300)])
    ask(machine, *[Get(("q",), session=7)] * 3000)
    snapshot = snapshot_of(machine)
    assert snapshot.count(b"\xa7session") > 5
    copy = restored(snapshot)
    assert snapshot_of(copy) == snapshot
    assert len(copy.taken(7)) == 3000
    assert ask(copy, AttachSession(299, 298)) == [SessionAttached(1000, 19)]


@pytest.mark.parametrize(
    "frames",
    {
        "sessions without a table": (SESSIONS,),
        "two tables": (TABLE, TABLE, SESSIONS),
        "table behind sessions": (TABLE, SESSIONS, TABLE),
        "clone before sessions": (["clone", 1, 10], TABLE, SESSIONS),
        "table of a time without sessions": (["sessions", 1, 0],),
        "counter zero": (["sessions", 0, 0],),
        "counter past 63 bits": (["sessions", 2**63, 0],),
        "fewer sessions than announced": (["sessions", 9, 4], SESSIONS),
        "more sessions than announced": (["sessions", 9, 2], SESSIONS),
        "number zero": (["sessions", 9, 1], session(0, 0)),
        "number not yet given": (["sessions", 2, 1], session(0, 2)),
        "number twice": (["sessions", 9, 2], session(7, []), session(7, [])),
        "numbers fall": (["sessions", 9, 2], session(7, []), session(0, 1)),
        "negative secret": (["sessions", 9, 1], session(1, -1)),
        "no secret": (["sessions", 9, 1], session(1, None)),
        "negative time to live": (["sessions", 9, 1], session(2, -1)),
        "negative deadline": (["sessions", 9, 1], session(3, -1)),
        "no deadline": (["sessions", 9, 1], session(3, None)),
        "graced is no truth value": (["sessions", 9, 1], session(4, 1)),
        "ending is no truth value": (["sessions", 9, 1], session(5, 1)),
        "job that does not run": (["sessions", 9, 1], session(7, [3])),
        "job twice": (["sessions", 9, 1], session(7, [1, 1])),
        "jobs out of order": (["sessions", 9, 1], session(7, [2, 1])),
        "job of two sessions": (["sessions", 9, 2], session(7, [1]), session(0, 3)),
        "request zero": (["sessions", 9, 1], of_requests([0, D1, []])),
        "negative request": (["sessions", 9, 1], of_requests([-1, D1, []])),
        "requests out of order": (["sessions", 9, 1], of_requests([2, D1, []], [1, D1, []])),
        "request twice": (["sessions", 9, 1], of_requests([2, D1, []], [2, D1, []])),
        "request below the window": (["sessions", 9, 1], of_requests([2, D1, []], [66, D1, []])),
        "text for a digest": (["sessions", 9, 1], of_requests([1, "d", []])),
        "part twice": (["sessions", 9, 1], of_requests([1, D1, [[0, ["plain", "accepted"]]] * 2])),
        "parts out of order": (["sessions", 9, 1], of_requests([1, D1, [[1, ["empty", True]], [0, ["empty", True]]]])),
        "answer with an id not yet given": (["sessions", 9, 1], of_requests([1, D1, [[0, ["handed", 10]]]])),
        "unknown answer": (["sessions", 9, 1], of_requests([1, D1, [[0, ["future"]]]])),
        "unknown plain answer": (["sessions", 9, 1], of_requests([1, D1, [[0, ["plain", "future"]]]])),
        "answer with a tail": (["sessions", 9, 1], of_requests([1, D1, [[0, ["plain", "accepted", 1]]]])),
        "request with a tail": (["sessions", 9, 1], of_requests([1, D1, [], 1])),
        "session with a tail": (["sessions", 9, 1], ["session", [[2, 7, 1, 1, False, False, [], [], "", 1]]]),
        "number for a user": (["sessions", 9, 1], session(8, 1)),
    }.items(),
    ids=lambda case: case[0],
)
def test_inconsistent_sessions_are_refused(machine: Machine, frames: tuple[str, tuple[object, ...]]) -> None:
    refuse(machine, forged(HEAD, WAITING, RUNNING, *frames[1], END))


def test_forged_frames_of_these_tests_are_right_as_they_stand() -> None:
    restored(forged(HEAD, WAITING, RUNNING, ["sessions", 9, 1], session(0, 2), END))
    for requests in ([[1, D1, [[0, ["handed", 9]]]]], [[3, D1, []], [66, D1, []]]):
        restored(forged(HEAD, WAITING, RUNNING, ["sessions", 9, 1], of_requests(*requests), END))


@pytest.mark.parametrize(("counter", "reply"), [(2**62, Accepted()), (2**62 + 1, InvalidSnapshot())])
def test_counter_near_its_end_is_invalid_in_a_foreign_snapshot(counter: int, reply: object) -> None:
    snapshot = forged(HEAD, ["sessions", counter, 0], ["end", 0, 0])
    machine = Machine()
    assert ask(machine, *clone_of(snapshot))[-1] == reply
    ask(machine, *[OpenSession(0, 1000)] * 3)
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
    restored(snapshot)          # our own is readable all the same


@settings(LAW, max_examples=300)
@given(st.data())
def test_random_frames_are_refused_or_make_a_sound_machine(data: st.DataObject) -> None:
    odd: st.SearchStrategy[object] = st.sampled_from(
        [None, -1, 0, 1, 2, 3, 8, 66, 67, 2**63 - 1, 2**63, 2**64 - 1, "i1", b"", True, [], [1], [2], 1.5, REQUESTS[:2]]
    )
    rows = SESSIONS[1]
    at = data.draw(st.integers(0, 2))
    if data.draw(st.booleans()):
        row = changed(rows[at], data.draw(st.integers(0, 10)), data.draw(odd))
    else:
        at = 0
        number = data.draw(st.integers(0, len(REQUESTS) - 1))
        request = changed(REQUESTS[number], data.draw(st.integers(0, 2)), data.draw(odd))
        row = changed(rows[0], 6, changed(REQUESTS, number, request))
    snapshot = forged(HEAD, WAITING, RUNNING, TABLE, ["session", changed(rows, at, row)], END)
    machine = Machine()
    try:
        machine.restore([snapshot])
    except SnapshotError:
        assert snapshot_of(machine) == snapshot_of(Machine())
        return
    assert snapshot_of(restored(snapshot_of(machine))) == snapshot_of(machine)
    for _ in play(machine, random_session_log(1, 30)):
        pass
    requests = [Request(2, number, D1, 0, False, CloneChunk(1, last=True)) for number in (1, 66, 67, 130)]
    ask(machine, *requests, CloseSession(2, True), *[Get(None)] * 10, now_ms=2**63)
