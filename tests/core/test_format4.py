"""The snapshot that the last program of format 4 left on a disk: before queues counted and sessions had addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from core import (
    Accepted,
    AttachSession,
    CloneChunk,
    CloneEnd,
    Finished,
    Get,
    Handed,
    JobState,
    Machine,
    OpenSession,
    Order,
    Policy,
    Put,
    Request,
    Results,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    Stored,
    Then,
    Tick,
    Totals,
    User,
)
from tests.core.forged_frames import FORMAT_2
from tests.core.format4_log import START_MS, log
from tests.core.logs import ask, restored, run, snapshot_of
from tests.core.test_clone import clone_of
from tests.core.test_formats import jobs_of

SNAPSHOT = (Path(__file__).parent / "data" / "format4.snapshot").read_bytes()
NOW_MS = START_MS + 1100        # its clock


@pytest.fixture
def machine() -> Machine:
    """Restored from it."""
    return restored(SNAPSHOT)


def again(*numbers: int) -> list[Request]:
    """The requests of session 1 with these numbers, as they were asked."""
    asked = [one for entry in log(FORMAT_2) for one in entry if isinstance(one, Request) and one.session == 1]
    return [one for one in asked if one.number in numbers]


def test_jobs_of_format_4_are_there_in_their_states(machine: Machine) -> None:
    assert machine.total(None) == Totals(queues=8, priorities=13, jobs=18, running=3)     # idle and shut have none
    assert [job.data for job in machine.peek_queue("timed", JobState.READY, 9)] == [b"3", b"1"]
    assert [job.data for job in machine.peek_queue("after", JobState.DELAYED, 9)] == [
        b"of order", b"of single", b"of work",
    ]
    assert [job.data for job in machine.peek_queue("mail", JobState.DEAD, 9)] == [b"soon dead"]
    assert machine.ready("timed") == 0              # its item runs
    run(machine, Tick(), now_ms=NOW_MS)
    assert b"of work" in [job.data for job in machine.peek_queue("after", JobState.READY, 9)]      # it was released


def test_settings_and_keys_of_format_4_hold(machine: Machine) -> None:
    mail, timed = machine.queue_settings("mail"), machine.queue_settings("timed")
    assert mail is not None
    assert timed is not None
    assert (mail.tries, mail.dead, mail.keep_ms, mail.then) == (1, "graves", 60_000, Then.DEAD)
    assert (timed.order, timed.item_limit) == (Order.TIME, 1)
    assert (machine.settings.policy, machine.settings.session_ttl_ms) == (Policy.PRIORITY, 50_000)
    assert machine.users == {"mailer": User("put:mail*", b"key one")}
    assert machine._state.kept.until_ms("mail", "done") == START_MS + 60_700


def test_sessions_of_format_4_live_on_at_no_address(machine: Machine) -> None:
    assert [(one.number, one.user, one.address, one.used_ms) for one in machine.sessions()] == [
        (1, "", "", START_MS + 800), (2, "mailer", "", START_MS + 10_000), (3, "mailer", "", START_MS + 700),
    ]
    assert ask(machine, *again(1, 3, 4, 5), AttachSession(1, 5)) == [
        Stored("i1"), Results((Stored(), Stored())), Finished(), Handed(6, "mail", 2, b"mail 2"),
        SessionAttached(60_000, 5),
    ]
    # Together they have an owner, that of unknown address; the third has a bound job.
    asked = [OpenSession(9, 5000, "mailer", owner_max=2), AttachSession(2, 2**64 - 1), AttachSession(3, 7)]
    assert ask(machine, *asked) == [
        SessionOpened("5_0000000000000009", 5000), SessionNotFound(), SessionAttached(86_400_000, 1),
    ]


def test_ages_of_jobs_of_format_4_count_from_its_clock(machine: Machine) -> None:
    assert machine.history("mail", NOW_MS + 5000).oldest_ms == 5000
    run(machine, Put("new", 0, b""), now_ms=NOW_MS + 100)
    assert machine.history("new", NOW_MS + 5000).oldest_ms == 4900
    assert machine.history("timed", NOW_MS + 5000).oldest_ms == 5000
    again = restored(snapshot_of(machine))
    assert again.history("mail", NOW_MS + 5000).oldest_ms == 5000


def test_clone_under_way_in_format_4_goes_on(machine: Machine) -> None:
    assert ask(machine, CloneChunk(7, FORMAT_2[100:]), CloneEnd(7)) == [Accepted()] * 2
    assert machine.total(None) == Totals(2, 2, 4, 0)        # jobs that ran in another cluster wait


def test_clone_of_a_snapshot_of_format_4_is_taken() -> None:
    machine = Machine()
    assert ask(machine, *clone_of(SNAPSHOT))[-1] == Accepted()
    assert machine.total(None) == Totals(8, 13, 18, 3)


def test_restored_format_4_has_the_jobs_of_its_log_executed_today(machine: Machine) -> None:
    today = Machine()
    for index, operations in enumerate(log(FORMAT_2), start=1):
        today.apply(index, START_MS + 100 * index, index, operations)
    assert jobs_of(machine) == jobs_of(today)
    gets = [Get(None)] * 30
    assert ask(machine, *gets, now_ms=NOW_MS) == ask(today, *gets, now_ms=NOW_MS)
    assert snapshot_of(restored(SNAPSHOT)) == snapshot_of(restored(snapshot_of(restored(SNAPSHOT))))
