"""Each promise about sessions can be seen broken: histories with one wrong reply, green with the right one."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from sockpqd.core import (
    Accepted,
    AttachSession,
    CloneEnd,
    CloseSession,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    Later,
    Lead,
    NotFound,
    OpenSession,
    Operation,
    Put,
    Reply,
    Request,
    RequestMismatch,
    RequestTooOld,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    Stored,
    SwitchService,
    Then,
    Tick,
    TouchSession,
)
from tests.sim.clients.outcomes import Outcome
from tests.sim.oracles.checks import Checks
from tests.sim.oracles.session_promises import SessionPromises
from tests.sim.world.events import Events
from tests.sim.world.trace import Trace, Violation

Step = tuple[int, Operation, Reply]

X, Y = Put("q", 0, b"x"), Put("q", 0, b"y")
GET, GETB = Get(("q",)), Get(("q",), 1000)
BOUND = Get(("q",), session=1)
TTL_MS = 1000
OPENED = (0, OpenSession(5, TTL_MS), SessionOpened("1_0000000000000005", TTL_MS))
GONE, NOTHING = SessionNotFound(), Empty(False)
LATE_MS = TTL_MS + 16           # the session is over, if it was not used


def lead(grace_ms: int, expire_default: Then = Then.LATER, silence_ms: int = 0) -> Lead:
    return Lead("n1", 1, ("n1",), bytes(16), grace_ms, expire_default, (), silence_ms)


def req(
    operation: Any, number: int = 1, part: int = 0, digest: bytes = b"", *,
    keep_waiting: bool = False, until_finished: bool = False,
) -> Request:
    return Request(1, number, digest or b"%16d" % number, part, keep_waiting, operation, until_finished)


def x(id_: int = 1) -> Handed:
    return Handed(id_, "q", 0, b"x")


def y(id_: int) -> Handed:
    return Handed(id_, "q", 0, b"y")


def told(*steps: Step) -> SessionPromises:
    ledger = SessionPromises(Counter())
    for now_ms, operation, reply in steps:
        ledger.applied(now_ms, [operation], [reply])
    return ledger


STORED = (0, X, Stored())
PUT_X = (0, req(X), Stored())
GOT_X = (0, req(GET, 2), x())
TOOK_X = (0, req(BOUND, 2), x())
FILL = [(0, req(Done(99), number), NotFound()) for number in (*range(2, 64), 65)]      # 1 falls out of the window

# The name of a promise; what happened before; what was done then; the right reply; a wrong one; what is said to that.
BROKEN: dict[str, tuple[list[Step], tuple[int, Operation], Reply, Reply, str]] = {
    "a PUT is executed once": (
        [OPENED, PUT_X, PUT_X, (0, GET, x())], (0, GET), NOTHING, x(2), "x is handed out as 2, and runs as 1"),
    "a PUT is executed once, also when its job has ended": (
        [OPENED, PUT_X, PUT_X, (0, GET, x()), (0, Done(1), Finished())],
        (0, GET), NOTHING, x(2), "x is handed out as 2, and has ended"),
    "a PUT is executed once, also when its job has expired": (
        [OPENED, PUT_X, (0, Get(("q",), 100, Then.DONE), x()), (500, req(X), Stored())],
        (500, GET), NOTHING, x(2), "x is handed out as 2, and has ended"),
    "a PUT is answered the same again": (
        [OPENED, (0, req(Put("q", 0, b"x", new_item=True)), Stored("i1"))],
        (0, req(Put("q", 0, b"x", new_item=True))), Stored("i1"), Stored("i2"), "was answered"),
    "a DONE is answered the same again": (
        [OPENED, PUT_X, GOT_X, (0, req(Done(1), 3), Finished(True))],
        (0, req(Done(1), 3)), Finished(True), NotFound(), "was answered"),
    "a LATER is answered the same again": (
        [OPENED, PUT_X, GOT_X, (0, req(Later(1), 3), Accepted())],
        (0, req(Later(1), 3)), Accepted(), NotFound(), "was answered"),
    "what was not found is not found again": (
        [OPENED, PUT_X, (0, req(Done(1), 3), NotFound()), GOT_X],
        (0, req(Done(1), 3)), NotFound(), Finished(), "was answered"),
    "a job is given again": (
        [OPENED, PUT_X, (0, Y, Stored()), GOT_X], (0, req(GET, 2)), x(), y(2), "was answered"),
    "a job that runs is given again": (
        [OPENED, PUT_X, GOT_X], (0, req(GET, 2)), x(), NOTHING, "was answered"),
    "a job that has ended is not given again": (
        [OPENED, PUT_X, GOT_X, (0, Done(1), Finished())], (0, req(GET, 2)), NOTHING, x(), "id 1 is handed out twice"),
    "a job is given again under its id": (
        [OPENED, PUT_X, (0, req(GETB, 2), x()), (900, TouchSession(1), Accepted())],
        (1016, req(GETB, 2)), x(2), x(), "id 1 is handed out twice"),
    "a job is given to one request": (
        [OPENED, PUT_X, GOT_X], (0, req(GET, 3)), NOTHING, x(), "id 1 is handed out twice"),
    "a job is given again to a request only": (
        [OPENED, PUT_X, GOT_X], (0, GET), NOTHING, x(), "id 1 is handed out twice"),
    "a 404 is answered again": (
        [OPENED, (0, req(GET, 2), NOTHING), PUT_X], (0, req(GET, 2)), NOTHING, x(), "was answered"),
    "whoever waits is answered once": (
        [OPENED, (0, req(GET, 2, keep_waiting=True), NOTHING), PUT_X, (0, req(GET, 2, keep_waiting=True), x())],
        (0, req(GET, 2, keep_waiting=True)), x(), NOTHING, "was answered"),
    "whoever waits until all is finished hears it again": (
        [OPENED, (0, req(GET, 2, keep_waiting=True, until_finished=True), NOTHING), PUT_X],
        (0, req(GET, 2, keep_waiting=True, until_finished=True)), NOTHING, x(), "was answered"),
    "the parts of a command have an answer each": (
        [OPENED, PUT_X, (0, req(GET, 1, 1, keep_waiting=True), x())],
        (0, req(GET, 1, 1, keep_waiting=True)), x(), Stored(), "was answered"),

    "a session that is used lives": (
        [OPENED, (TTL_MS, TouchSession(1), Accepted())], (2 * TTL_MS, req(X)), Stored(), GONE, "the session lives"),
    "a session that is asked in lives": (
        [OPENED, (900, req(Done(99)), NotFound())], (1500, TouchSession(1)), Accepted(), GONE, "the session lives"),
    "a session ends": ([OPENED], (LATE_MS, req(X)), GONE, Stored(), "the session is over"),
    "a session that is over gets no grace": (
        [OPENED, (LATE_MS, Tick(), Accepted()), (LATE_MS, lead(5000), Accepted())],
        (LATE_MS, TouchSession(1)), GONE, Accepted(), "the session is over"),
    "a session has a grace": (
        [OPENED, (LATE_MS, lead(5000), Accepted())], (LATE_MS + 5000, req(X)), Stored(), GONE, "the session lives"),
    "a session has one grace": (
        [OPENED, (LATE_MS, lead(500), Accepted()), (LATE_MS + 400, lead(500), Accepted())],
        (LATE_MS + 600, req(X)), GONE, Stored(), "the session is over"),
    "a session that is used has a grace again": (
        [OPENED, (0, lead(5000), Accepted()), (4000, TouchSession(1), Accepted()), (4500, lead(5000), Accepted())],
        (9500, TouchSession(1)), Accepted(), GONE, "the session lives"),
    "a session that is used keeps its grace": (
        [OPENED, (0, lead(5000), Accepted()), (100, TouchSession(1), Accepted())],
        (4900, TouchSession(1)), Accepted(), GONE, "the session lives"),
    "a session lives while the service is offline": (
        [OPENED, (0, SwitchService(False), Accepted()), (LATE_MS, Tick(), Accepted()),
         (LATE_MS, SwitchService(True, 500), Accepted())],
        (LATE_MS + 400, req(X)), Stored(), GONE, "the session lives"),
    "a session that is closed is over": (
        [OPENED, (0, CloseSession(1, True), Accepted())], (0, req(X)), GONE, Stored(), "the session is over"),
    "a session is closed once": (
        [OPENED, (0, CloseSession(1, True), Accepted())],
        (0, CloseSession(1, True)), GONE, Accepted(), "the session is over"),
    "a session is told as living": ([OPENED], (0, AttachSession(1, 5)), SessionAttached(TTL_MS, 0), GONE, "lives"),
    "a session has a number of its own": (
        [OPENED, (LATE_MS, Tick(), Accepted())], (LATE_MS, OpenSession(6, TTL_MS)),
        SessionOpened("2_0000000000000006", TTL_MS), SessionOpened("1_0000000000000006", TTL_MS), "opened twice"),
    "a session has a secret": (
        [OPENED], (0, AttachSession(1, 4)), GONE, SessionAttached(TTL_MS, 0), "wrong secret"),
    "a wrong secret is no use": (
        [OPENED, (900, AttachSession(1, 4), GONE)], (LATE_MS, TouchSession(1)), GONE, Accepted(), "is over"),
    "a session knows its last request": (
        [OPENED, PUT_X, (0, req(Done(1), 7), NotFound())],
        (0, AttachSession(1, 5)), SessionAttached(TTL_MS, 7), SessionAttached(TTL_MS, 1), "the last request was 7"),
    "a session knows its greatest request": (
        [OPENED, (0, req(Done(1), 7), NotFound()), PUT_X],
        (0, AttachSession(1, 5)), SessionAttached(TTL_MS, 7), SessionAttached(TTL_MS, 1), "the last request was 7"),

    "what is answered 404 was not executed": (
        [OPENED, (LATE_MS, req(X), GONE)], (LATE_MS, GET), NOTHING, x(), "x is handed out as 1, and was never put"),
    "what is answered Too Old was not executed": (
        [OPENED, *FILL, (0, req(X), RequestTooOld())], (0, GET), NOTHING, x(), "was never put"),
    "what is answered Mismatch was not executed": (
        [OPENED, PUT_X, (0, req(Y, digest=bytes(16)), RequestMismatch()), (0, GET, x())],
        (0, GET), NOTHING, y(2), "was never put"),
    "a DONE that is answered 404 was not executed": (
        [OPENED, STORED, (0, GET, x()), (LATE_MS, req(Done(1)), GONE)],
        (LATE_MS, Done(1)), Finished(), NotFound(), "the job runs"),
    "an old request is too old": ([OPENED, *FILL], (0, req(X)), RequestTooOld(), Stored(), "is RequestTooOld"),
    "a number below 1 is too old": ([OPENED], (0, req(X, 0)), RequestTooOld(), Stored(), "is RequestTooOld"),
    "a request in the window is not too old": (
        [OPENED, *FILL[:-1], (0, req(Done(99), 64), NotFound())],
        (0, req(X)), Stored(), RequestTooOld(), "is not RequestTooOld"),
    "a number is used for one command": (
        [OPENED, PUT_X], (0, req(Y, digest=bytes(16))), RequestMismatch(), Stored(), "is RequestMismatch"),
    "a command is no other than itself": (
        [OPENED, PUT_X], (0, req(X)), Stored(), RequestMismatch(), "is not RequestMismatch"),
    "a number that was refused is free": (
        [OPENED], (0, req(Y, digest=bytes(16))), Stored(), RequestMismatch(), "is not RequestMismatch"),

    "a bound job runs as long as its session lives": (
        [OPENED, PUT_X, TOOK_X], (1000, GET), NOTHING, x(2), "x is handed out as 2, and runs as 1"),
    "a bound job runs as long as its session is used": (
        [OPENED, PUT_X, TOOK_X, (900, TouchSession(1), Accepted())],
        (1500, Done(1)), Finished(), NotFound(), "the job runs"),
    "a bound job runs through the grace": (
        [OPENED, PUT_X, TOOK_X, (LATE_MS, lead(5000), Accepted())],
        (LATE_MS + 4900, Done(1)), Finished(), NotFound(), "the job runs"),
    "a bound job returns when its session ends": (
        [OPENED, PUT_X, TOOK_X], (LATE_MS, Done(1)), NotFound(), Finished(), "the job does not run"),
    "a bound job returns when its session is released": (
        [OPENED, PUT_X, TOOK_X, (0, CloseSession(1, True), Accepted())],
        (0, Done(1)), NotFound(), Finished(), "the job does not run"),
    "a bound job runs on when its session is closed": (
        [OPENED, PUT_X, TOOK_X, (0, CloseSession(1, False), Accepted())],
        (9999, Done(1)), Finished(), NotFound(), "the job runs"),
    "a job that is not bound runs on": (
        [OPENED, PUT_X, GOT_X], (9999, Done(1)), Finished(), NotFound(), "the job runs"),
    "a bound job has a lease as well": (
        [OPENED, PUT_X, (0, req(Get(("q",), 100, session=1), 2), x())],
        (116, Done(1)), NotFound(), Finished(), "the job does not run"),
    "a job is bound to a session that lives": (
        [OPENED, STORED], (LATE_MS, BOUND), GONE, x(), "the session is over"),
    "a hand-out that is bound uses the session": (
        [OPENED, (900, BOUND, NOTHING)], (1500, TouchSession(1)), Accepted(), GONE, "the session lives"),

    "a lease lasts": ([STORED, (0, GETB, x())], (1000, Done(1)), Finished(), NotFound(), "the job runs"),
    "a lease ends": ([STORED, (0, GETB, x())], (1016, Done(1)), NotFound(), Finished(), "the job does not run"),
    "a lease has one grace": (
        [STORED, (0, GETB, x()), (900, lead(500), Accepted()), (1300, lead(500), Accepted())],
        (1416, Done(1)), NotFound(), Finished(), "the job does not run"),
    "a lease has a grace": (
        [STORED, (0, GETB, x()), (900, lead(500), Accepted())],
        (1399, Done(1)), Finished(), NotFound(), "the job runs"),
    "a short lease has its own length for a grace": (
        [STORED, (0, GETB, x()), (900, lead(5000), Accepted())],
        (1916, Done(1)), NotFound(), Finished(), "the job does not run"),
    "a lease lasts for the time without a leader, too": (
        [STORED, (0, GETB, x()), (900, lead(5000, silence_ms=700), Accepted())],
        (2599, Done(1)), Finished(), NotFound(), "the job runs"),
    "a grace makes no lease shorter": (
        [STORED, (0, GETB, x()), (0, lead(500), Accepted())], (900, Done(1)), Finished(), NotFound(), "the job runs"),
    "a lease begins at the replicated time": (
        [STORED, (500, Tick(), Accepted()), (0, GETB, x())], (1400, Done(1)), Finished(), NotFound(), "the job runs"),
    "a lease ends as is usual": (
        [(0, lead(0, Then.DONE), Accepted()), STORED, (0, GETB, x())],
        (1016, GET), NOTHING, x(2), "x is handed out as 2, and has ended"),
    "what comes first ends first": (
        [OPENED, STORED, (0, Get(("q",), 1500, Then.DONE, session=1), x())],
        (2000, GET), x(2), x(), "id 1 is handed out twice"),
    "a job goes back with LATER": (
        [STORED, (0, GET, x()), (0, Later(1), Accepted())], (0, GET), x(2), x(), "id 1 is handed out twice"),
}


@pytest.mark.parametrize("promise", BROKEN)
def test_the_right_reply_is_green(promise: str) -> None:
    before, (now_ms, operation), right, _, _ = BROKEN[promise]
    told(*before, (now_ms, operation, right))


@pytest.mark.parametrize("promise", BROKEN)
def test_the_wrong_reply_is_red(promise: str) -> None:
    before, (now_ms, operation), _, wrong, match = BROKEN[promise]
    ledger = told(*before)
    with pytest.raises(Violation, match=match):
        ledger.applied(now_ms, [operation], [wrong])


def test_a_command_that_was_sent_under_two_numbers_is_found() -> None:
    with pytest.raises(Violation, match="x is put twice"):
        told(OPENED, PUT_X, (0, req(X, 2), Stored()))


def outcome(operation: Operation, reply: Reply) -> Outcome:
    told = Outcome(operation, lambda outcome: None)
    told.applied(reply)
    return told


@pytest.mark.parametrize(
    ("steps", "where"), [
        ([], "waits"),
        ([GOT_X], "runs as 1"),
        ([TOOK_X, (LATE_MS, Tick(), Accepted())], "waits"),
        ([(0, req(GETB, 2), x()), (900, req(Done(1), 2, digest=bytes(16)), RequestMismatch())], "runs as 1"),
    ],
)
def test_an_acknowledged_job_that_has_not_ended_is_lost(steps: list[Step], where: str) -> None:
    checks = Checks(Trace(Events()))
    checks.ledger = told(OPENED, PUT_X, *steps)
    with pytest.raises(Violation, match=f"was acknowledged and is lost: it {where}"):
        checks.nothing_lost([outcome(req(X), Stored())])
    with pytest.raises(Violation, match="is lost"):
        checks.nothing_lost([])


def test_what_ended_is_not_lost() -> None:
    checks = Checks(Trace(Events()))
    checks.ledger = told(OPENED, PUT_X, GOT_X, (0, req(Done(1), 3), Finished()), (LATE_MS, req(Y), SessionNotFound()))
    checks.nothing_lost([outcome(req(X), Stored()), outcome(req(Y), SessionNotFound())])


def test_a_clone_leaves_the_sessions_and_their_answers() -> None:
    cloned = OPENED, PUT_X, GOT_X, (0, req(CloneEnd(9), 3), Accepted()), (0, req(CloneEnd(9), 3), Accepted())
    told(*cloned, (0, req(GET, 2), x()), (0, Done(1), Finished()), (0, GET, x(2)))
    for operation, reply in (req(X), NotFound()), (req(GET, 4), x()), (TouchSession(1), SessionNotFound()):
        ledger = told(*cloned)
        with pytest.raises(Violation):
            ledger.applied(0, [operation], [reply])
