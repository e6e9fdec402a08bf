"""EXPIRE and THEN, the order of expiry, and the failover grace."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Configure,
    ConfigureQueue,
    Done,
    Finished,
    Get,
    Handed,
    JobTotals,
    Lead,
    Machine,
    NotFound,
    Put,
    PutWith,
    QueueChange,
    Resume,
    Stored,
    SwitchService,
    Then,
    Tick,
    Touch,
)
from sockpqd.core.limits import DURATION_MS_MAX
from tests.core.helpers.logs import ask, data_of, lead, run

START_MS = 16_000       # the beginning of a bucket


@pytest.fixture
def machine() -> Machine:
    machine = Machine()
    run(machine, lead(), now_ms=START_MS)
    return machine


def put_and_get(machine: Machine, expire_ms: int | None, then: Then = Then.LATER, data: bytes = b"") -> None:
    """Put a job and hand it out in the same entry, with a lease of `expire_ms`."""
    ask(machine, Put("q", 0, data), Get(("q",), expire_ms, then), now_ms=START_MS)


def test_lease_never_ends_early_and_at_most_16_ms_late(machine: Machine) -> None:
    put_and_get(machine, 100)
    for now_ms in range(START_MS, START_MS + 101):
        run(machine, Tick(), now_ms=now_ms)
        assert machine.total("q").running == 1
    run(machine, Tick(), now_ms=START_MS + 116)
    assert machine.total("q") == JobTotals(1, 1, 1, 0)


def test_next_due_is_when_a_tick_ends_the_lease(machine: Machine) -> None:
    assert machine.next_due_ms() is None
    put_and_get(machine, 100)
    due_ms = machine.next_due_ms()
    assert due_ms is not None
    assert START_MS + 100 < due_ms <= START_MS + 116
    run(machine, Tick(), now_ms=due_ms - 1)
    assert machine.total("q").running == 1
    run(machine, Tick(), now_ms=due_ms)
    assert machine.total("q").running == 0
    assert machine.next_due_ms() is None


def test_then_later_puts_the_job_to_the_tail_and_makes_it_ready(machine: Machine) -> None:
    ask(machine, Put("q", 0, b"a"), Put("q", 0, b"b"), Get(("q",), 1, Then.LATER), now_ms=START_MS)
    applied = run(machine, Get(("q",)), Get(("q",)), now_ms=START_MS + 16)
    assert data_of(applied.replies) == [b"b", b"a"]
    assert (list(applied.effects.ready), list(applied.effects.ended)) == (["q"], [])


def test_then_done_removes_the_job_and_tells_that_one_ended(machine: Machine) -> None:
    put_and_get(machine, 1, Then.DONE)
    applied = run(machine, Tick(), now_ms=START_MS + 16)
    assert (list(applied.effects.ready), list(applied.effects.ended)) == ([], ["q"])
    assert machine.total(None) == JobTotals(0, 0, 0, 0)


@pytest.mark.parametrize(("default", "jobs"), [(Then.LATER, 1), (Then.DONE, 0), (Then.DEFAULT, 1)])
def test_without_then_the_default_of_the_cluster_counts(default: Then, jobs: int) -> None:
    machine = Machine()
    run(machine, lead(expire_default=default))
    run(machine, lead(expire_default=Then.LATER if default is Then.DONE else Then.DONE))   # only the first one counts
    ask(machine, Put("q", 0, b""), Get(("q",), 1))
    run(machine, Tick(), now_ms=16)
    assert machine.total("q") == JobTotals(jobs, jobs, jobs, 0)


@pytest.mark.parametrize("default", [Then.LATER, Then.DONE])
@pytest.mark.parametrize(("settings", "own_then"), [
    (None, False), (QueueChange(weight=2), False), (QueueChange(0, Then.DEAD), False), (QueueChange(900), False),
    (QueueChange(900, Then.DEAD), True),
])
def test_a_lease_of_the_job_ends_as_one_of_its_queue_or_else_as_the_cluster_says(
    default: Then, settings: QueueChange | None, own_then: bool,
) -> None:
    """LEASE is a length only; a queue without a lease has no THEN either, whatever else it has."""
    machine = Machine()
    run(machine, lead(expire_default=default))
    if settings is not None:
        ask(machine, ConfigureQueue("q", settings))
    ask(machine, PutWith(Put("q", 0, b""), lease_ms=1), Get(("q",)))
    run(machine, Tick(), now_ms=16)
    assert (machine.total("q_dead").jobs, machine.total("q").jobs) == (
        (1, 0) if own_then else (0, 0) if default is Then.DONE else (0, 1)
    )


@pytest.mark.parametrize("expire_ms", [None, 0, -1, -(10**40)])
def test_without_a_limit_the_job_runs_for_ever(machine: Machine, expire_ms: int | None) -> None:
    put_and_get(machine, expire_ms, Then.DONE)
    assert machine.running()[0].deadline_ms is None
    run(machine, Tick(), now_ms=10**15)
    assert machine.total("q").running == 1


@pytest.mark.parametrize("expire_ms", [DURATION_MS_MAX + 1, 2**64, 10**40])
def test_absurd_limit_is_a_hundred_years(machine: Machine, expire_ms: int) -> None:
    put_and_get(machine, expire_ms)
    assert machine.running()[0].deadline_ms == START_MS + DURATION_MS_MAX


def test_id_is_void_after_the_lease(machine: Machine) -> None:
    put_and_get(machine, 1)
    assert ask(machine, Done(1), now_ms=START_MS + 16) == [NotFound()]


def test_job_can_be_done_until_its_expiry_is_applied(machine: Machine) -> None:
    put_and_get(machine, 1)
    assert ask(machine, Done(1), now_ms=START_MS + 15) == [Finished(queue_done=True)]


def test_done_jobs_leave_nothing_behind(machine: Machine) -> None:
    put_and_get(machine, 1)
    ask(machine, Done(1))
    assert machine.next_due_ms() is None
    applied = run(machine, Tick(), now_ms=START_MS + 1000)
    assert not applied.effects.ready


def test_leases_end_in_the_order_of_deadline_and_id(machine: Machine) -> None:
    for data, expire_ms in ((b"a", 30), (b"b", 10), (b"c", 11), (b"d", 10), (b"e", 50)):
        put_and_get(machine, expire_ms, data=data)
    run(machine, Tick(), now_ms=START_MS + 100)
    assert data_of(ask(machine, *[Get(("q",))] * 5)) == [b"b", b"d", b"c", b"a", b"e"]


def test_at_most_a_thousand_leases_end_in_one_entry(machine: Machine) -> None:
    jobs = [Put("q", 0, b"%d" % number) for number in range(2500)]
    ask(machine, *jobs, now_ms=START_MS)
    ask(machine, *[Get(("q",), 5)] * 2500, now_ms=START_MS)
    ask(machine, Done(7), Done(1500))
    for running in (1498, 498, 0):
        due_ms = machine.next_due_ms()
        assert due_ms is not None
        assert due_ms <= START_MS + 50
        run(machine, Tick(), now_ms=START_MS + 50)
        assert machine.total("q").running == running
    waiting = data_of(ask(machine, *[Get(("q",))] * 2500))
    assert waiting == [job.data for number, job in enumerate(jobs, start=1) if number not in (7, 1500)]


def test_expired_job_keeps_priority_item_and_data(machine: Machine) -> None:
    ask(machine, Put("q", 3, b"work", "x"), Get(("q",), 1, Then.LATER), now_ms=START_MS)
    assert ask(machine, Get(("q",)), now_ms=START_MS + 16) == [Handed(2, "q", 3, b"work", "x")]


def test_lead_extends_short_leases_before_anything_ends(machine: Machine) -> None:
    put_and_get(machine, 12_000)
    put_and_get(machine, 60_000)
    put_and_get(machine, None)
    applied = run(machine, lead("n2", 2, grace_ms=10_000), now_ms=START_MS + 13_000)
    assert not applied.effects.ready
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 23_000, START_MS + 60_000, None]
    assert ask(machine, Done(1), now_ms=START_MS + 22_000) == [Finished()]


@pytest.mark.parametrize(("expire_ms", "grace_ms", "silence_ms", "lasts_ms"), [
    (2000, 10_000, 300, 2300),                              # its own length, and the time without a leader
    (10_000, 10_000, 300, 10_300), (60_000, 10_000, 300, 10_300), (10_001, 10_000, 0, 10_000),
    (2000, 1000, 300, 1300),
    (2000, 10_000, 7_200_000, 12_000), (2000, 1000, 1001, 2000),        # hours without one do not count in full
    (2000, 10_000, -5, 2000), (1, 10_000, 0, 1),
])
def test_lease_lasts_for_its_length_or_the_grace_after_a_silence(
    machine: Machine, expire_ms: int, grace_ms: int, silence_ms: int, lasts_ms: int,
) -> None:
    put_and_get(machine, expire_ms)
    now_ms = START_MS + expire_ms - 1
    run(machine, lead("n2", 2, grace_ms, silence_ms=silence_ms), now_ms=now_ms)
    assert [job.deadline_ms for job in machine.running()] == [now_ms + lasts_ms]
    run(machine, Tick(), now_ms=now_ms + lasts_ms)
    assert machine.total("q").running == 1
    run(machine, Tick(), now_ms=now_ms + lasts_ms + 16)
    assert machine.total("q").running == 0


def test_the_length_that_counts_is_that_of_the_hand_out_also_when_it_was_touched(machine: Machine) -> None:
    put_and_get(machine, 2000)
    ask(machine, Touch(1, 60_000), now_ms=START_MS)
    run(machine, lead("n2", 2, grace_ms=10_000), now_ms=START_MS + 59_000)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 61_000]


def test_leases_of_all_lengths_end_in_order_after_a_failover(machine: Machine) -> None:
    for expire_ms in (3000, 20_000, 1000, 2000):
        put_and_get(machine, expire_ms)
    run(machine, lead("n2", 2, grace_ms=10_000, silence_ms=500), now_ms=START_MS + 20_000)
    ended = []
    for step in range(1, 700):
        run(machine, Tick(), now_ms=START_MS + 20_500 + step * 16)
        ended += [number for number in (1, 2, 3, 4) if number not in ended + [job.id for job in machine.running()]]
    assert ended == [3, 4, 1, 2]
    assert machine.next_due_ms() is None


def test_grace_is_granted_once_per_hand_out(machine: Machine) -> None:
    put_and_get(machine, 1100)
    run(machine, lead("n2", 2, grace_ms=1000), now_ms=START_MS + 500)
    run(machine, lead("n3", 3, grace_ms=1000), now_ms=START_MS + 1400)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 1500]
    applied = run(machine, lead("n1", 4, grace_ms=1000), now_ms=START_MS + 5000)
    assert not applied.effects.ready                        # a Lead ends no lease, the next entry does
    assert list(run(machine, Tick(), now_ms=0).effects.ready) == ["q"]
    (reply,) = ask(machine, Get(("q",), 1100))              # a new hand-out, a new grace
    assert isinstance(reply, Handed)
    run(machine, lead("n2", 5, grace_ms=1000), now_ms=START_MS + 5500)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 6500]


def test_lease_that_needs_no_grace_keeps_its_claim_to_one(machine: Machine) -> None:
    put_and_get(machine, 5000)
    run(machine, lead("n2", 2, grace_ms=1000), now_ms=START_MS)
    run(machine, lead("n3", 3, grace_ms=1000), now_ms=START_MS + 4500)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 5500]


def test_after_a_time_in_which_nothing_was_logged_all_leases_have_a_grace(machine: Machine) -> None:
    put_and_get(machine, 1000)
    put_and_get(machine, 900_000)
    run(machine, lead("n2", 2, grace_ms=1000), now_ms=START_MS + 1)             # uses up the failover grace
    applied = run(machine, Resume(1000), Tick(), now_ms=START_MS + 600_000)
    assert not applied.effects.ready
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 601_000, START_MS + 900_000]
    applied = run(machine, Tick(), now_ms=START_MS + 600_900)
    assert not applied.effects.ready
    assert list(run(machine, Tick(), now_ms=START_MS + 601_016).effects.ready) == ["q"]


def test_such_a_grace_is_not_that_of_a_failover(machine: Machine) -> None:
    put_and_get(machine, 1000)
    run(machine, Resume(1000), now_ms=START_MS + 5000)
    run(machine, lead("n2", 2, grace_ms=1000), now_ms=START_MS + 5500)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 6500]
    run(machine, lead("n3", 3, grace_ms=1000), now_ms=START_MS + 6000)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 6500]


def test_the_clusters_own_grace_goes_first(machine: Machine) -> None:
    put_and_get(machine, 100)
    run(machine, Configure(grace_ms=3000))
    run(machine, Resume(1000), now_ms=START_MS + 5000)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 8000]


def test_no_lease_ends_while_the_service_is_offline_and_workers_get_a_grace_afterwards(machine: Machine) -> None:
    put_and_get(machine, 100)
    put_and_get(machine, 60_000)
    ask(machine, SwitchService(False), now_ms=START_MS)
    applied = run(machine, Tick(), now_ms=START_MS + 5000)
    assert not applied.effects.ready
    applied = run(machine, SwitchService(True, 10_000), now_ms=START_MS + 6000)
    assert not applied.effects.ready
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 16_000, START_MS + 60_000]
    run(machine, SwitchService(True, 10_000), now_ms=START_MS + 7000)
    assert machine.running()[0].deadline_ms == START_MS + 16_000
    assert ask(machine, Done(1), now_ms=START_MS + 15_000) == [Finished()]


@pytest.mark.parametrize("grace_ms", [0, -5])
def test_grace_can_be_switched_off(machine: Machine, grace_ms: int) -> None:
    put_and_get(machine, 100)
    run(machine, Lead("n2", 2, ("n1", "n2"), b"", grace_ms), now_ms=START_MS + 5000)
    assert [job.deadline_ms for job in machine.running()] == [START_MS + 100]
    assert ask(machine, Put("p", 0, b""))[0] == Stored()
    assert machine.total("q").running == 0
