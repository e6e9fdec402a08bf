"""Workers: the owner of a name, how many a user may have, and the fate of an operator's settings."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    BeatWorker,
    CloseSession,
    Machine,
    OpenSession,
    SessionOpened,
    SetWorker,
    TooManyWorkers,
    TouchSession,
    WorkerBounds,
    WorkerExists,
    WorkerNotFound,
    WorkerState,
)
from sockpqd.core.limits import WORKER_LEFT_MS, WORKER_SILENT_MS, WORKERS_MAX
from tests.core.helpers.logs import ask, lead, restored, run, snapshot_of

START_MS = 16_000
RUN = WorkerBounds(None, None, WorkerState.RUN)
STOP = WorkerBounds(None, None, WorkerState.STOP)


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    run(machine, lead(), now_ms=START_MS)
    return machine


def opened(machine: Machine, user: str = "", ttl_ms: int = 900_000) -> int:
    """Open a session, and return its number."""
    (reply,) = ask(machine, OpenSession(1, ttl_ms, user, "10.0.0.1"))
    assert isinstance(reply, SessionOpened)
    return int(reply.sid.partition("_")[0])


def beat(machine: Machine, session: int, name: str = "pool", after_ms: int = 0) -> object:
    (reply,) = ask(machine, BeatWorker(name, 4, 0, "10.0.0.1:1", session), now_ms=machine.clock_ms + after_ms)
    return reply


def say(machine: Machine, state: WorkerState, name: str = "pool") -> object:
    (reply,) = ask(machine, SetWorker(name, state=state))
    return reply


def test_a_name_belongs_to_its_session_until_that_ends(machine: Machine) -> None:
    mine, other = opened(machine), opened(machine)
    assert beat(machine, mine) == RUN
    assert beat(machine, other) == WorkerExists()
    assert [one.session for one in machine.workers()] == [mine]
    assert beat(machine, mine) == RUN
    ask(machine, CloseSession(mine, release=True))
    assert beat(machine, other) == RUN


def test_a_name_is_free_when_its_session_was_silent_for_long(machine: Machine) -> None:
    mine, other = opened(machine), opened(machine)
    beat(machine, mine)
    say(machine, WorkerState.PAUSE)
    assert beat(machine, other, after_ms=WORKER_SILENT_MS - 1) == WorkerExists()
    ask(machine, TouchSession(mine))                # it is not silent
    assert beat(machine, other, after_ms=1) == WorkerExists()
    assert beat(machine, other, after_ms=WORKER_SILENT_MS) == WorkerBounds(None, None, WorkerState.PAUSE)
    assert beat(machine, mine) == WorkerExists()
    assert beat(machine, mine, "another") == RUN


def test_a_user_takes_no_more_than_half_of_what_the_others_leave(machine: Machine) -> None:
    greedy, again, second = opened(machine, "ann"), opened(machine, "ann"), opened(machine, "bob")
    for number in range(WORKERS_MAX // 2):
        assert beat(machine, (greedy, again)[number % 2], f"a{number}") == RUN
    assert beat(machine, greedy, "one_more") == TooManyWorkers()
    assert beat(machine, greedy, "a0") == RUN
    for number in range(WORKERS_MAX // 4):
        assert beat(machine, second, f"b{number}") == RUN
    assert beat(machine, second, "one_more") == TooManyWorkers()
    copy = restored(snapshot_of(machine))
    assert beat(copy, second, "one_more") == TooManyWorkers()
    ask(machine, CloseSession(again, release=True))
    assert beat(machine, greedy, "one_more") == RUN
    assert beat(machine, opened(machine), "nobodys") == RUN


def test_what_an_operator_said_to_a_dead_worker_is_told_to_the_next_of_its_name(machine: Machine) -> None:
    dead = opened(machine)
    beat(machine, dead)
    assert say(machine, WorkerState.STOP) == Accepted()
    ask(machine, CloseSession(dead, release=True))
    assert machine.workers() == []
    copy = restored(snapshot_of(machine))
    assert snapshot_of(copy) == snapshot_of(machine)
    for one in (copy, machine):
        successor = opened(one)
        assert beat(one, successor, after_ms=WORKER_LEFT_MS - 1) == STOP
        ask(one, CloseSession(successor, release=True))     # it has heard it
        assert beat(one, opened(one)) == RUN


def test_it_can_be_changed_and_is_forgotten(machine: Machine) -> None:
    dead = opened(machine)
    for name in ("pool", "other"):
        beat(machine, dead, name)
        say(machine, WorkerState.STOP, name)
    ask(machine, CloseSession(dead, release=True))
    assert say(machine, WorkerState.RUN) == Accepted()
    successor = opened(machine)
    assert beat(machine, successor) == RUN
    assert beat(machine, successor, "other", after_ms=WORKER_LEFT_MS) == RUN
    assert say(machine, WorkerState.STOP, "nobody") == WorkerNotFound()
