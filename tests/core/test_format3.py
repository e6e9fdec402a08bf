"""The snapshot that the last program of format 3 left on a disk: before queues had settings and jobs had keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import (
    Accepted,
    Address,
    CloneChunk,
    CloneEnd,
    Finished,
    Get,
    Handed,
    InvalidSnapshot,
    Later,
    Machine,
    Membership,
    NotFound,
    OpenSession,
    Request,
    RequestTooOld,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    Stored,
    Then,
    Tick,
    Totals,
    User,
)
from core import AttachSession as Attach
from tests.core.forged_frames import FORMAT_2
from tests.core.format3_log import MEMBERS, START_MS, log
from tests.core.logs import ask, data_of, restored, run, snapshot_of
from tests.core.test_clone import clone_of
from tests.core.test_formats import jobs_of

SNAPSHOT = (Path(__file__).parent / "data" / "format3.snapshot").read_bytes()


@pytest.fixture
def machine() -> Machine:
    """Restored from it."""
    return restored(SNAPSHOT)


def again(*numbers: int) -> list[Request]:
    """The requests of session 1 with these numbers, as they were asked."""
    asked = [one for one in log(FORMAT_2)[6] if isinstance(one, Request) and one.session == 1]
    return [one for one in asked if one.number in numbers]


def test_waiting_jobs_of_format_3_are_there_in_their_order(machine: Machine) -> None:
    assert machine.total(None) == Totals(queues=3, priorities=6, jobs=9, running=3)
    assert data_of(ask(machine, *[Get(("mail",))] * 6)) == [
        b"mail 5", b"mail 7", b"of another", b"mail 0", b"mail 3", b"mail 6",
    ]
    assert machine.ready_of_item("scan", "i1") == 1
    assert data_of(ask(machine, Get(None, item="i1"), *[Get(("print",))] * 2)) == [b"\0\xff", b"", b"x" * 300]


def test_running_jobs_of_format_3_run_on(machine: Machine) -> None:
    assert [
        (job.id, job.queue, job.priority, job.data, job.item, job.deadline_ms, job.then, job.graced, job.session)
        for job in machine.running()
    ] == [
        (1, "scan", 0, b"asked", "i2", START_MS + 60_700, Then.DONE, False, 1),
        (2, "mail", 2, b"mail 2", None, START_MS + 10_800, Then.LATER, True, 1),
        (7, "mail", 1, b"mail 1", "order", None, Then.LATER, False, None),
    ]
    run(machine, Tick(), now_ms=START_MS + 70_000)
    assert [job.id for job in machine.running()] == [7]


def test_answers_of_format_3_are_given_again(machine: Machine) -> None:
    assert ask(machine, *again(1, 70, 72, 73, 74, 75, 76, 78)) == [
        RequestTooOld(), RequestTooOld(), Stored(), Finished(), NotFound(), InvalidSnapshot(), SessionNotFound(),
        Stored(), Finished(queue_done=True),
    ]


def test_sessions_and_users_of_format_3_live_on(machine: Machine) -> None:
    assert machine.session_count == 2
    assert ask(machine, Attach(2, 2**64 - 1, "admin"), Attach(2, 2**64 - 1, "mailer"), Attach(1, 5)) == [
        SessionNotFound(), SessionAttached(1000, 1), SessionAttached(60_000, 78),
    ]
    assert ask(machine, OpenSession(9, 5000)) == [SessionOpened("4_0000000000000009", 5000)]
    assert machine.users == {"mailer": User("put:mail*", b"key one"), "admin": User("admin", b"key two")}


def test_counters_and_members_of_format_3_go_on(machine: Machine) -> None:
    assert (machine.index, machine.term, machine.leader) == (10, 4, "n2")
    assert (machine.clock_ms, machine.cluster_id) == (START_MS + 1000, b"sixteen bytes id")
    assert machine.server_ids == {"n2": 2, "n3": 3, "n4": 4, "n5": 5, "n1": 6}
    addresses = {name: Address(name) for name in MEMBERS}
    addresses |= {"n4": Address("n4", "h:4", "h:5"), "n5": Address("n5", "h:6", "")}
    assert machine.membership == Membership(addresses, learner="n5", configuration=1)
    assert ask(machine, Get(("print",))) == [Handed(9, "print", 2**63 - 1, b"", "order")]


def test_clone_under_way_in_format_3_goes_on(machine: Machine) -> None:
    assert ask(machine, CloneChunk(7, FORMAT_2[100:]), CloneEnd(7)) == [Accepted()] * 2
    assert machine.total(None) == Totals(2, 2, 4, 0)        # jobs that ran in another cluster wait


def test_clone_of_a_snapshot_of_format_3_is_taken() -> None:
    machine = Machine()
    assert ask(machine, *clone_of(SNAPSHOT))[-1] == Accepted()
    assert machine.total(None) == Totals(3, 6, 9, 3)


def test_restored_format_3_has_the_jobs_of_its_log_executed_today(machine: Machine) -> None:
    today = Machine()
    for index, operations in enumerate(log(FORMAT_2), start=1):
        today.apply(index, START_MS + 100 * index, index, operations)
    assert jobs_of(machine) == jobs_of(today)
    assert [job.attempts for job in machine.running()] == [1] * 3
    ending = [Later(1), Later(2), Later(7), *[Get(None)] * 13]
    assert ask(machine, *ending) == ask(today, *ending)
    assert snapshot_of(restored(SNAPSHOT)) == snapshot_of(restored(snapshot_of(restored(SNAPSHOT))))
