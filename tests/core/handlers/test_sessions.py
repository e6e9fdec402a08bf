"""Sessions: opening, coming back, the end, and the jobs bound to them (spec/sessions 2)."""

from __future__ import annotations

from time import process_time

import pytest

from sockpqd.core import (
    Accepted,
    AttachSession,
    CloseSession,
    ConfigureQueue,
    Done,
    Finished,
    Get,
    Handed,
    Later,
    Machine,
    NotFound,
    OpenSession,
    Operation,
    Put,
    QueueChange,
    Request,
    Resume,
    Return,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    SwitchService,
    Then,
    Tick,
    TooManySessions,
    TouchSession,
)
from sockpqd.core.handlers.cost import JOB
from sockpqd.core.limits import DUE_MAX, SESSION_TTL_MS_MAX, SESSION_TTL_MS_MIN, SESSIONS_MAX, SPENT_MAX, STEP
from tests.core.helpers.logs import ask, data_of, lead, restored, run, snapshot_of

START_MS = 16_000       # the beginning of a bucket
TTL_MS = 1600           # whole buckets
SECRET = 0x9F3C5A7E11D0C2B4
OPEN = OpenSession(SECRET, TTL_MS)


@pytest.fixture
def machine() -> Machine:
    """Return a machine with session 1."""
    machine = Machine()
    run(machine, lead(), now_ms=START_MS)
    ask(machine, OPEN)
    return machine


def test_an_entry_ends_when_new_sessions_have_ended_much_of_others() -> None:
    machine, opened = Machine(), OpenSession(SECRET, SESSION_TTL_MS_MAX, owner_max=10)
    run(machine, lead(), *[opened] * 10, now_ms=START_MS)
    for session in range(1, 11):
        run(machine, *[ConfigureQueue(f"q{session}_{number:03}", QueueChange(), create=True, session=session)
                       for number in range(300)], now_ms=START_MS)
    for session in range(1, 11):        # used last in this order
        run(machine, AttachSession(session, SECRET), now_ms=START_MS + session)
    replies = machine.apply(machine.index + 1, START_MS + 100, 0, [opened] * 10).replies
    assert len(replies) == SPENT_MAX // (STEP * JOB * 301) + 1
    assert all(isinstance(reply, SessionOpened) for reply in replies)


def bound(machine: Machine, *expires_ms: int | None, session: int | None = 1, then: Then = Then.LATER) -> None:
    """Put jobs into queue q, one for each lease, bound to the session."""
    for expire_ms in expires_ms:
        data = b"%d" % machine.index
        ask(machine, Put("q", 0, data), Get(("q",), expire_ms, then, session=session))


def due_ms(machine: Machine) -> int | None:
    """Return when something ends. The machine may look at a session too early; one that was restored does not."""
    exact_ms = restored(snapshot_of(machine)).next_due_ms()
    soon_ms = machine.next_due_ms()
    assert (soon_ms is None) == (exact_ms is None)
    assert (soon_ms or 0) <= (exact_ms or 0)
    return exact_ms


def alive(machine: Machine, session: int = 1) -> bool:
    """Return whether there is such a session. Asking does not use it."""
    return ask(restored(snapshot_of(machine)), TouchSession(session)) == [Accepted()]


# --- opening and coming back

def test_name_is_made_of_number_and_secret(machine: Machine) -> None:
    assert ask(machine, OpenSession(SECRET, 900_000), OpenSession(15, 5000)) == [
        SessionOpened("2_9f3c5a7e11d0c2b4", 900_000),
        SessionOpened("3_000000000000000f", 5000),
    ]


@pytest.mark.parametrize(("secret", "name"), [(2**64 - 1, "f" * 16), (2**64, "0" * 16), (-1, "f" * 16)])
def test_secret_has_64_bits_whatever_is_proposed(machine: Machine, secret: int, name: str) -> None:
    assert ask(machine, OpenSession(secret, 5000)) == [SessionOpened(f"2_{name}", 5000)]


@pytest.mark.parametrize(
    ("asked", "given"),
    [(0, SESSION_TTL_MS_MIN), (-(10**40), SESSION_TTL_MS_MIN), (10**40, SESSION_TTL_MS_MAX)],
)
def test_absurd_time_to_live_is_cut_to_the_limits(machine: Machine, asked: int, given: int) -> None:
    (reply,) = ask(machine, OpenSession(SECRET, asked))
    assert isinstance(reply, SessionOpened)
    assert reply.ttl_ms == given


def test_number_is_never_given_again(machine: Machine) -> None:
    ask(machine, CloseSession(1, False))
    assert ask(restored(snapshot_of(machine)), OPEN) == [SessionOpened(f"2_{SECRET:016x}", TTL_MS)]


def test_attach_tells_time_to_live_and_the_greatest_request_number(machine: Machine) -> None:
    assert ask(machine, AttachSession(1, SECRET)) == [SessionAttached(TTL_MS, 0)]
    ask(machine, *[Request(1, number, b"", 0, False, Done(1)) for number in (3, 8, 5)])
    assert ask(machine, AttachSession(1, SECRET)) == [SessionAttached(TTL_MS, 8)]


@pytest.mark.parametrize(("session", "secret"), [(1, SECRET + 1), (1, SECRET + 2**64), (2, SECRET), (0, SECRET)])
def test_wrong_name_is_not_found_and_uses_nothing(machine: Machine, session: int, secret: int) -> None:
    before = snapshot_of(machine)
    assert ask(machine, AttachSession(session, secret), now_ms=START_MS) == [SessionNotFound()]
    copy = restored(before)
    run(copy, Tick())
    assert snapshot_of(copy) == snapshot_of(machine)


def test_there_are_at_most_100_000_sessions() -> None:
    machine = Machine()
    replies = ask(machine, *[OPEN] * (SESSIONS_MAX + 1))
    assert replies[-2:] == [SessionOpened(f"{SESSIONS_MAX}_{SECRET:016x}", TTL_MS), TooManySessions()]
    ask(machine, CloseSession(77, False))
    assert ask(machine, OPEN, OPEN) == [SessionOpened(f"{SESSIONS_MAX + 1}_{SECRET:016x}", TTL_MS), TooManySessions()]


# --- the end

@pytest.mark.parametrize(
    "operation",
    [
        TouchSession(1),
        AttachSession(1, SECRET),
        Get(("q",), session=1),
        Request(1, 1, b"", 0, False, Put("q", 0, b"")),
        Request(1, 7, b"other", 0, False, Put("q", 0, b"")),        # a mismatch
        Request(1, -1, b"", 0, False, Put("q", 0, b"")),            # too old
    ],
)
def test_session_ends_its_time_after_any_last_use(machine: Machine, operation: Operation) -> None:
    ask(machine, Request(1, 7, b"", 0, False, Done(1)))
    ask(machine, operation, now_ms=START_MS + TTL_MS)
    assert due_ms(machine) == START_MS + 2 * TTL_MS + 16
    run(machine, Tick(), now_ms=START_MS + 2 * TTL_MS + 15)
    assert alive(machine)
    run(machine, Tick(), now_ms=START_MS + 2 * TTL_MS + 16)
    assert not alive(machine)
    assert due_ms(machine) is None


def test_entry_in_which_the_time_is_over_does_not_find_the_session(machine: Machine) -> None:
    assert ask(machine, TouchSession(1), now_ms=START_MS + TTL_MS + 16) == [SessionNotFound()]


def test_closed_session_is_gone(machine: Machine) -> None:
    ask(machine, OPEN)
    assert ask(machine, CloseSession(1, False), CloseSession(1, True), TouchSession(1), TouchSession(2)) == [
        Accepted(), SessionNotFound(), SessionNotFound(), Accepted(),
    ]
    assert ask(machine, Request(1, 1, b"", 0, False, Put("q", 0, b"")), Get(None, session=1)) == [SessionNotFound()] * 2
    assert machine.total(None).queues == 0


def test_next_due_is_the_first_of_leases_and_sessions(machine: Machine) -> None:
    assert due_ms(machine) == START_MS + TTL_MS + 16
    ask(machine, Put("q", 0, b""), Get(("q",), 160))
    assert due_ms(machine) == START_MS + 160 + 16
    ask(machine, Done(1), OpenSession(0, 1000))
    assert due_ms(machine) == (START_MS + 1000) // 16 * 16 + 16
    ask(machine, CloseSession(2, True), TouchSession(1), now_ms=START_MS + 32)
    assert due_ms(machine) == START_MS + 32 + TTL_MS + 16


def test_lead_grants_sessions_a_grace_once_between_two_uses(machine: Machine) -> None:
    run(machine, lead("n2", 2, grace_ms=3200), now_ms=START_MS + TTL_MS + 160)      # it is over, but for the grace
    assert due_ms(machine) == START_MS + TTL_MS + 160 + 3200 + 16
    run(machine, lead("n3", 3, grace_ms=3200), now_ms=START_MS + TTL_MS + 320)
    assert due_ms(machine) == START_MS + TTL_MS + 160 + 3200 + 16
    ask(machine, TouchSession(1))       # takes no time away, and brings a new grace
    assert due_ms(machine) == START_MS + TTL_MS + 160 + 3200 + 16
    run(machine, lead("n3", 3, grace_ms=3200), now_ms=START_MS + TTL_MS + 480)
    assert due_ms(machine) == START_MS + TTL_MS + 480 + 3200 + 16


def test_after_a_time_in_which_nothing_was_logged_all_sessions_have_a_grace(machine: Machine) -> None:
    run(machine, lead("n2", 2, grace_ms=3200), now_ms=START_MS + TTL_MS)        # uses up the failover grace
    much_later_ms = START_MS + TTL_MS + 640_000
    run(machine, Resume(3200), Tick(), now_ms=much_later_ms)
    assert due_ms(machine) == much_later_ms + 3200 + 16
    ask(machine, TouchSession(1), now_ms=much_later_ms + 3184)
    assert due_ms(machine) == much_later_ms + 3184 + TTL_MS + 16


def test_session_that_needs_no_grace_keeps_its_claim_to_one(machine: Machine) -> None:
    run(machine, lead("n2", 2, grace_ms=800), now_ms=START_MS)
    run(machine, lead("n3", 3, grace_ms=800), now_ms=START_MS + TTL_MS)
    assert due_ms(machine) == START_MS + TTL_MS + 800 + 16


def test_no_session_ends_while_the_service_is_offline(machine: Machine) -> None:
    bound(machine, None)
    ask(machine, SwitchService(False))
    run(machine, Tick(), now_ms=START_MS + 10 * TTL_MS)
    assert len(machine.taken(1)) == 1
    run(machine, SwitchService(True, 800), now_ms=START_MS + 10 * TTL_MS)
    assert due_ms(machine) == START_MS + 10 * TTL_MS + 800 + 16
    assert ask(machine, TouchSession(1), now_ms=START_MS + 10 * TTL_MS + 800) == [Accepted()]


# --- bound jobs

def test_taken_are_the_jobs_bound_to_the_session(machine: Machine) -> None:
    ask(machine, OPEN, *[Put("q", 0, b"%d" % number) for number in range(5)])
    gets = [Get(("q",), session=1), Get(("q",)), Get(("q",), session=2), Get(("q",), session=1), Get(("q",), session=9)]
    assert ask(machine, *gets)[-1] == SessionNotFound()
    assert machine.taken(1) == [1, 4]
    assert machine.taken(2) == [3]
    assert machine.taken(9) == []
    assert [job.session for job in machine.running()] == [1, None, 2, 1]


@pytest.mark.parametrize("ending", [Done(1), Later(1), Return(1)])
def test_ended_hand_out_is_bound_no_more(machine: Machine, ending: Operation) -> None:
    bound(machine, None)
    assert ask(machine, ending)[0] in (Finished(queue_done=True), Accepted())
    assert machine.taken(1) == []
    ask(machine, Get(("q",)), CloseSession(1, True))
    assert machine.total("q").jobs == 0


def test_jobs_go_later_at_the_end_whatever_their_lease(machine: Machine) -> None:
    bound(machine, None, 10**9)
    bound(machine, 10**9, then=Then.DONE)
    ask(machine, Put("q", 0, b"new"))
    applied = run(machine, Tick(), now_ms=START_MS + TTL_MS + 16)
    assert list(applied.effects.ready) == ["q"]
    assert ask(machine, Done(1), Done(2), Done(3)) == [NotFound()] * 3
    assert data_of(ask(machine, *[Get(("q",))] * 4)) == [b"new", b"2", b"3", b"4"]     # behind all others, in rising id
    assert due_ms(machine) is None


def test_item_of_a_released_job_is_told_as_ready(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"", "x"), Get(("q",), session=1))
    applied = run(machine, CloseSession(1, True))
    assert list(applied.effects.ready_items) == [("q", "x")]
    assert machine.ready_of_item("q", "x") == 1


def test_jobs_of_a_session_closed_without_release_run_on_unbound(machine: Machine) -> None:
    bound(machine, None, 320)
    applied = run(machine, CloseSession(1, False))
    assert not applied.effects.ready
    assert [(job.id, job.session) for job in machine.running()] == [(1, None), (2, None)]
    run(machine, Tick(), now_ms=START_MS + 10**9)
    assert [job.id for job in machine.running()] == [1]
    assert ask(machine, Done(1)) == [Finished()]


def test_leases_and_sessions_end_in_the_order_of_their_deadlines(machine: Machine) -> None:
    ask(machine, OpenSession(0, TTL_MS - 160), OpenSession(0, TTL_MS))
    # Session 1 ends at 1600, 2 at 1440, 3 at 1600; the leases 1439, 1440, 1441, 1600, 1601.
    bound(machine, 1601, 1600, session=None)
    bound(machine, None, session=3)
    bound(machine, None)
    bound(machine, 1441, session=None)
    bound(machine, None, session=2)
    bound(machine, 1440, 1439, session=None)
    bound(machine, 1650)
    names = {job.id: job.data for job in machine.running()}
    run(machine, Tick(), now_ms=START_MS + 3200)
    order = [8, 7, 6, 5, 2, 4, 9, 3, 1]
    assert data_of(ask(machine, *[Get(("q",))] * 9)) == [names[number] for number in order]


def test_many_jobs_of_a_session_are_released_in_several_entries(machine: Machine) -> None:
    jobs = 2 * DUE_MAX + 500
    ask(machine, OPEN, *[Put("q", 0, b"%d" % number) for number in range(jobs)], *[Get(("q",), session=1)] * jobs)
    ask(machine, Put("p", 0, b""), Get(("p",), session=2), TouchSession(1), TouchSession(2))
    for waiting in (DUE_MAX, 2 * DUE_MAX):
        run(machine, Tick(), now_ms=START_MS + TTL_MS + 16)
        assert machine.ready("q") == waiting
        assert ask(restored(snapshot_of(machine)), TouchSession(1), AttachSession(1, SECRET)) == [SessionNotFound()] * 2
        assert machine.taken(1) == []
        assert machine.ready("p") == 0
        run(machine, lead("n1", 5, grace_ms=10**6))         # what has ended has no grace
        machine = restored(snapshot_of(machine))
    run(machine, Tick())
    assert machine.ready("q") == jobs
    assert [int(data) for data in data_of(ask(machine, *[Get(("q",))] * jobs))] == list(range(jobs))


def test_many_sessions_end_in_several_entries(machine: Machine) -> None:
    ask(machine, *[OpenSession(0, TTL_MS)] * (2 * DUE_MAX))
    bound(machine, None, session=DUE_MAX)
    bound(machine, None, session=DUE_MAX + 1)
    run(machine, Tick(), now_ms=START_MS + TTL_MS + 16)     # 999 sessions, and the job of the next one
    assert [job.session for job in machine.running()] == [DUE_MAX + 1]
    run(machine, Tick())
    assert machine.total("q").running == 0
    assert machine.next_due_ms() == START_MS + TTL_MS + 16
    run(machine, Tick())
    assert machine.next_due_ms() is None


def test_to_look_at_many_sessions_that_go_on_costs_little() -> None:
    """After an outage, say: no lump of work may make a node late."""
    shares = []
    for _ in range(3):
        machine = Machine()
        begun = process_time()
        run(machine, *[OpenSession(0, 10_000)] * 50_000, now_ms=START_MS)
        opened = process_time()
        run(machine, *[TouchSession(number) for number in range(1, 50_001)], now_ms=START_MS + 5000)
        used = process_time()
        run(machine, Tick(), now_ms=START_MS + 10_016)
        shares.append((process_time() - used) / (opened - begun))
        assert due_ms(machine) == START_MS + 15_016 // 16 * 16
    assert min(shares) < 0.35


def test_close_releases_many_jobs_in_several_entries(machine: Machine) -> None:
    jobs = DUE_MAX + 1
    ask(machine, *[Put("q", 0, b"")] * jobs, *[Get(("q",), session=1)] * jobs)
    assert ask(machine, CloseSession(1, True)) == [Accepted()]
    assert machine.ready("q") == DUE_MAX
    assert machine.next_due_ms() == START_MS + 16
    run(machine, Tick(), now_ms=START_MS + 16)
    assert machine.ready("q") == jobs
    assert due_ms(machine) is None


def test_lease_of_a_bound_job_ends_as_any(machine: Machine) -> None:
    bound(machine, 160, then=Then.DONE)
    bound(machine, 160)
    applied = run(machine, Tick(), now_ms=START_MS + 176)
    assert (list(applied.effects.ready), list(applied.effects.ended)) == (["q"], [])      # the other one waits in it
    assert machine.taken(1) == []
    (reply,) = ask(machine, Get(("q",)))
    assert isinstance(reply, Handed)
    ask(machine, CloseSession(1, True))
    assert machine.running()[0].id == reply.id
