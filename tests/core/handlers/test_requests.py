"""Requests: what is answered to a repetition, and what is refused (spec/sessions 3.3)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    CloneChunk,
    Done,
    Empty,
    Finished,
    Get,
    Handed,
    InvalidSnapshot,
    JobTotals,
    Later,
    Lead,
    Machine,
    NotFound,
    OpenSession,
    Put,
    Reply,
    Request,
    Requested,
    RequestMismatch,
    RequestTooOld,
    SessionNotFound,
    SessionOpened,
    Stored,
    Then,
    Tick,
)
from sockpqd.core.limits import REQUEST_WINDOW as WINDOW
from tests.core.handlers.test_clone import clone_of
from tests.core.helpers.logs import CLUSTER, ask, lead, restored, run, snapshot_of

DIGEST = b"sixteen bytes..."
TTL_MS = 86_400_000


@pytest.fixture
def machine() -> Machine:
    """Return a machine with sessions 1 and 2."""
    machine = Machine()
    run(machine, lead(), *[OpenSession(0, TTL_MS)] * 2)
    return machine


def asking(
    number: int, operation: Requested, *, part: int = 0, keep_waiting: bool = False, until_finished: bool = False,
    session: int = 1, digest: bytes = DIGEST,
) -> Request:
    """Return a request of session 1."""
    return Request(session, number, digest, part, keep_waiting, operation, until_finished)


def twice(machine: Machine, request: Request) -> list[Reply]:
    """Return the replies to a request and to its repetition after a restart, with another operation in between."""
    (first,) = ask(machine, request)
    copy = restored(snapshot_of(machine))
    ask(copy, Put("else", 0, b"", None, True), Get(("else",)))
    (second,) = ask(copy, request)
    return [first, second]


# --- the first answer again

def test_put_is_repeated(machine: Machine) -> None:
    assert twice(machine, asking(1, Put("q", 0, b"a"))) == [Stored()] * 2
    assert twice(machine, asking(2, Put("q", 0, b"b", None, True))) == [Stored("i1")] * 2
    assert ask(machine, asking(1, Put("q", 0, b"a")), asking(2, Put("q", 0, b"b", None, True))) == [
        Stored(), Stored("i1"),
    ]
    assert machine.total("q").jobs == 2


@pytest.mark.parametrize(
    ("item", "jobs", "reply"),
    [
        (None, 1, Finished(True, False)),
        ("x", 1, Finished(True, True)),
        ("x", 2, Finished(False, False)),
        (None, 2, Finished(False, False)),
    ],
)
def test_done_is_repeated_with_finq_and_fini(machine: Machine, item: str | None, jobs: int, reply: Reply) -> None:
    ask(machine, *[Put("q", 0, b"", item)] * jobs, Get(("q",)))
    assert twice(machine, asking(1, Done(1))) == [reply] * 2
    assert twice(machine, asking(2, Done(1))) == [NotFound()] * 2       # another number is another request


def test_later_is_repeated(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), Get(("q",)))
    assert twice(machine, asking(1, Later(1))) == [Accepted()] * 2
    ask(machine, Get(("q",)), asking(1, Later(1)))
    assert machine.total("q").running == 1


@pytest.mark.parametrize("unfinished", [False, True])
def test_get_that_found_nothing_is_repeated(machine: Machine, unfinished: bool) -> None:
    if unfinished:
        ask(machine, Put("q", 0, b""), Get(("q",)))
    request = asking(1, Get(("q",)))
    assert twice(machine, request) == [Empty(unfinished)] * 2
    ask(machine, Put("q", 0, b""))
    assert ask(machine, request) == [Empty(unfinished)]


def test_get_is_repeated_with_the_job_and_its_id(machine: Machine) -> None:
    ask(machine, Put("q", 3, b"work", "x"), Put("q", 3, b"more"))
    assert twice(machine, asking(1, Get(("q",)))) == [Handed(1, "q", 3, b"work", "x")] * 2


def test_operation_that_named_another_session_that_is_not_there_is_repeated(machine: Machine) -> None:
    assert twice(machine, asking(1, Get(("q",), session=9))) == [SessionNotFound()] * 2


def test_repetition_does_not_extend_a_lease(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), asking(1, Get(("q",), 160)))
    assert ask(machine, asking(1, Get(("q",), 160)), now_ms=150) == [Handed(1, "q", 0, b"")]
    run(machine, Tick(), now_ms=176)
    assert machine.ready("q") == 1


def test_get_is_executed_anew_when_its_job_runs_no_more(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"a"), Put("q", 0, b"b"), asking(1, Get(("q",), 160, Then.LATER)))
    expected = [Handed(2, "q", 0, b"b")] * 2
    assert ask(machine, *[asking(1, Get(("q",), 160, Then.LATER))] * 2, now_ms=176) == expected
    ask(machine, Done(2))
    assert twice(machine, asking(1, Get(("q",)))) == [Handed(3, "q", 0, b"a")] * 2


def test_bound_job_is_bound_after_a_repetition(machine: Machine) -> None:
    ask(machine, Put("q", 0, b""), *[asking(1, Get(("q",), session=1))] * 2)
    assert machine.taken(1) == [1]


# --- blocked commands

def test_empty_is_no_answer_of_a_command_that_waits(machine: Machine) -> None:
    getb = asking(1, Get(("q",)), keep_waiting=True)
    assert twice(machine, getb) == [Empty(False)] * 2
    ask(machine, Put("q", 0, b""))
    assert twice(machine, getb) == [Handed(1, "q", 0, b"")] * 2
    assert ask(machine, Put("q", 0, b""), Done(1), getb, Done(2), getb) == [
        Stored(), Finished(), Handed(2, "q", 0, b""), Finished(queue_done=True), Empty(False),
    ]


@pytest.mark.parametrize("part", [0, 1])
def test_command_that_waits_again_has_no_answer_any_more(machine: Machine, part: int) -> None:
    getb = asking(1, Get(("q",)), part=part, keep_waiting=True)
    ask(machine, Put("q", 0, b""), getb)
    running = snapshot_of(machine)
    assert ask(machine, Done(1), getb) == [Finished(queue_done=True), Empty(False)]
    # A CLONE brings the hand-out back, but that was over.
    assert ask(machine, *clone_of(running), Put("q", 0, b"new"), getb)[-1] == Handed(2, "q", 0, b"new")


def test_number_of_a_command_that_waits_is_used(machine: Machine) -> None:
    ask(machine, asking(7, Get(("q",)), keep_waiting=True))
    assert ask(restored(snapshot_of(machine)), asking(7, Put("q", 0, b""), digest=b"other")) == [RequestMismatch()]


def test_getbe_is_answered_when_all_is_finished(machine: Machine) -> None:
    getbe = asking(1, Get(("q",)), keep_waiting=True, until_finished=True)
    ask(machine, Put("q", 0, b""), Get(("q",)))
    assert twice(machine, getbe) == [Empty(True)] * 2
    ask(machine, Done(1))
    assert twice(machine, getbe) == [Empty(False)] * 2
    ask(machine, Put("q", 0, b""))
    assert ask(machine, getbe) == [Empty(False)]


@pytest.mark.parametrize("until_finished", [False, True])
def test_only_a_command_that_waits_waits(machine: Machine, until_finished: bool) -> None:
    ask(machine, Put("q", 0, b""), Get(("q",)))
    get = asking(1, Get(("q",)), until_finished=until_finished)
    assert ask(machine, get, Later(1), get) == [Empty(True), Accepted(), Empty(True)]


def put_wait(number: int, put: Put, digest: bytes = DIGEST) -> list[Request]:
    """Return PUT .. WAIT as it is proposed."""
    get = Get(("out",), item=put.item, item_of_put=put.new_item)
    return [
        asking(number, put, digest=digest), asking(number, get, part=1, keep_waiting=True, digest=digest),
    ]


def test_put_wait_is_repeated_before_and_after_its_output(machine: Machine) -> None:
    request = put_wait(1, Put("in", 0, b"", None, True))
    assert ask(machine, *request) == [Stored("i1"), Empty(False)]
    machine = restored(snapshot_of(machine))
    # New items of others in the same entry are not taken for its own.
    assert ask(machine, Put("out", 0, b"no", None, True), *request) == [Stored("i2"), Stored("i1"), Empty(False)]
    again = asking(1, Get(("out",), item="i1"), part=1, keep_waiting=True)      # as the waiter asks, once it knows
    output = Handed(1, "out", 0, b"output", "i1")
    assert ask(machine, Put("out", 0, b"output", "i1"), again) == [Stored(), output]
    machine = restored(snapshot_of(machine))
    assert ask(machine, *request, again) == [Stored("i1"), output, output]
    assert machine.total(None) == JobTotals(2, 2, 2, 1)


def test_repeated_put_wait_finds_the_output_that_came_meanwhile(machine: Machine) -> None:
    request = put_wait(1, Put("in", 0, b"", None, True))
    ask(machine, *request, Put("out", 0, b"output", "i1"))
    machine = restored(snapshot_of(machine))
    assert ask(machine, Put("out", 0, b"no", None, True), *request)[1:] == [
        Stored("i1"), Handed(1, "out", 0, b"output", "i1"),
    ]


def test_put_wait_with_an_item_of_its_own_is_repeated(machine: Machine) -> None:
    request = put_wait(1, Put("in", 0, b"", "mine"))
    ask(machine, *request)
    ask(machine, Put("out", 0, b"other", "yours"), Put("out", 0, b"output", "mine"))
    assert ask(machine, *request, *request) == [Stored(), Handed(1, "out", 0, b"output", "mine")] * 2
    assert machine.ready("in") == 1


def test_wait_that_uses_the_item_of_its_put_gets_the_right_one_on_repetition(machine: Machine) -> None:
    get = asking(1, Get(("out",), item_of_put=True), part=1, keep_waiting=True)
    put = asking(1, Put("in", 0, b"", "mine"))
    ask(machine, put, get)
    ask(machine, Put("out", 0, b"output", "mine"))
    assert ask(machine, Put("in", 0, b"", "yours"), put, get)[-1] == Handed(1, "out", 0, b"output", "mine")


def test_refused_put_wait_gives_no_output_of_somebody_else(machine: Machine) -> None:
    ask(machine, *put_wait(1, Put("in", 0, b"", None, True)))
    other = put_wait(1, Put("in", 0, b"", None, True), digest=b"other")
    got = ask(machine, Put("out", 0, b"", None, True), *other, Get(("out",), item_of_put=True))
    assert got == [Stored("i2"), RequestMismatch(), RequestMismatch(), Empty(False)]


def test_parts_are_answered_each_for_itself(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"%d" % number) for number in range(4)])
    parts = [asking(1, Get(("q",)), part=part) for part in (0, 1, 5, -1)]
    first = ask(machine, *parts)
    assert [reply.id for reply in first if isinstance(reply, Handed)] == [1, 2, 3, 4]
    assert ask(restored(snapshot_of(machine)), *reversed(parts)) == first[::-1]


# --- refusals

def test_other_command_under_the_same_number_is_a_mismatch(machine: Machine) -> None:
    ask(machine, asking(1, Put("q", 0, b"a")))
    assert ask(machine, *[asking(1, Put("q", 0, b"b"), part=part, digest=b"other") for part in (0, 1)]) == [
        RequestMismatch(), RequestMismatch(),
    ]
    assert ask(machine, asking(1, Put("q", 0, b"a"))) == [Stored()]
    assert machine.ready("q") == 1


def test_get_takes_the_number_of_a_getb_that_waits(machine: Machine) -> None:
    """As after a restart, where the log has a GETB that waits: the GET under its number ends the wait."""
    waits, other = asking(1, Get(("q",)), keep_waiting=True), asking(1, Get(("q",)), digest=b"other")
    assert ask(machine, waits) == [Empty(False)]
    machine = restored(snapshot_of(machine))
    assert ask(machine, other) == [Empty(False)]
    ask(machine, Put("q", 0, b""))
    assert ask(machine, waits, other) == [RequestMismatch(), Empty(False)]
    assert machine.ready("q") == 1


def test_number_below_the_window_is_too_old(machine: Machine) -> None:
    put = Put("q", 0, b"")
    ask(machine, asking(1, put), asking(3, put))
    assert ask(machine, asking(WINDOW + 1, put)) == [Stored()]
    assert ask(machine, asking(1, put), asking(2, put), asking(3, put)) == [RequestTooOld(), Stored(), Stored()]
    assert ask(machine, asking(10**6, put), asking(10**6 - WINDOW, put), asking(10**6 - WINDOW + 1, put)) == [
        Stored(), RequestTooOld(), Stored(),
    ]
    assert machine.ready("q") == 6


@pytest.mark.parametrize("number", [0, -1, -WINDOW, -(2**63)])
def test_numbers_begin_at_one(machine: Machine, number: int) -> None:
    assert ask(machine, asking(number, Put("q", 0, b""))) == [RequestTooOld()]
    assert restored(snapshot_of(machine)).ready("q") == 0


def test_answers_below_the_window_are_forgotten(machine: Machine) -> None:
    used: list[int] = []
    newest = 0
    for step in (*[1] * WINDOW, 5, 1, WINDOW - 1, *[1] * WINDOW, WINDOW, *[1] * WINDOW, WINDOW + 1, 3, 3):
        newest += step
        used.append(newest)
        ask(machine, asking(newest, Later(1)))
        assert snapshot_of(machine).count(DIGEST) == len([number for number in used if number > newest - WINDOW])


def test_sessions_know_nothing_of_each_other(machine: Machine) -> None:
    replies = ask(machine, *[asking(5, Put("q", 0, b"", None, True), session=session) for session in (1, 2, 3, 1, 2)])
    assert replies == [Stored("i1"), Stored("i2"), SessionNotFound(), Stored("i1"), Stored("i2")]
    assert ask(machine, asking(5, Later(1), session=2, digest=b"")) == [RequestMismatch()]


# --- CLONE

def foreign(next_session: int = 1, cluster_id: bytes = b"another clusters") -> bytes:
    """Return a snapshot of another cluster, with sessions of its own."""
    other = Machine()
    run(other, Lead("x1", 1, ("x1",), cluster_id, 0), *[OpenSession(7, TTL_MS)] * (next_session - 1))
    if next_session > 1:
        ask(other, Put("q", 0, b"theirs"), Get(("q",), session=1), asking(1, Done(77)))
    return snapshot_of(other)


def test_clone_is_executed_once(machine: Machine) -> None:
    *begin, end = clone_of(foreign())
    assert isinstance(end, CloneChunk)
    assert ask(machine, *begin, asking(1, end))[-1] == Accepted()
    applied = run(machine, Put("q", 0, b""), *clone_of(foreign(), clone=2)[:-1], asking(1, CloneChunk(2, last=True)))
    assert applied.replies[-1] == Accepted()
    assert not applied.effects.restored
    assert machine.ready("q") == 1
    assert b"clone" not in snapshot_of(machine)         # what came for the repetition is dropped


@pytest.mark.parametrize(
    "request_",
    [
        asking(1, CloneChunk(2, last=True), digest=b"other"), asking(1, CloneChunk(2, last=True), session=3),
        asking(-1, CloneChunk(2, last=True)),
    ],
)
def test_data_of_a_refused_clone_are_dropped(machine: Machine, request_: Request) -> None:
    ask(machine, asking(1, Later(1)), CloneChunk(2, total_bytes=10**6), CloneChunk(2, foreign()[:100]))
    assert b"clone" in snapshot_of(machine)
    ask(machine, request_)
    assert b"clone" not in snapshot_of(machine)


def test_refused_clone_drops_no_other_one(machine: Machine) -> None:
    *begin, end = clone_of(foreign(), clone=2)
    assert ask(machine, *begin, asking(1, CloneChunk(1, last=True), session=3), end)[-1] == Accepted()


def test_clone_that_came_to_nothing_is_answered_again(machine: Machine) -> None:
    assert twice(machine, asking(1, CloneChunk(5, last=True))) == [InvalidSnapshot()] * 2


def test_sessions_survive_a_clone_and_theirs_do_not_come_in(machine: Machine) -> None:
    ask(machine, *[Put("q", 0, b"%d" % number) for number in range(3)], *[Get(("q",), session=2)] * 2)
    own = snapshot_of(machine)
    ask(machine, Get(("q",), session=2), asking(1, Put("q", 0, b"")))
    ask(machine, *clone_of(own))
    assert machine.taken(2) == [1, 2]       # the third hand-out is gone
    assert machine.running()[0].session == 2
    assert ask(machine, asking(1, Put("q", 0, b""))) == [Stored()]
    assert machine.total("q").jobs == 1                         # as its answer says, though the CLONE took the job
    ask(machine, *clone_of(foreign(9)))
    assert machine.taken(1) == machine.taken(2) == []
    assert [job.session for job in machine.running()] == []
    assert ask(machine, asking(1, Put("q", 0, b""))) == [Stored()]


def test_jobs_that_were_bound_there_are_not_bound_here(machine: Machine) -> None:
    ask(machine, *clone_of(foreign(2)))
    assert [(job.id, job.session) for job in machine.running()] == [(1, None)]
    ask(machine, Done(1))
    assert machine.total(None).running == 0


@pytest.mark.parametrize(("theirs", "number"), [(2, 3), (9, 9)])
def test_session_numbers_go_on_from_the_greater_counter(machine: Machine, theirs: int, number: int) -> None:
    for cluster_id in (CLUSTER, b"another clusters"):
        ask(machine, *clone_of(foreign(theirs, cluster_id)))
    assert ask(machine, OpenSession(0, TTL_MS)) == [SessionOpened(f"{number}_{0:016x}", TTL_MS)]
