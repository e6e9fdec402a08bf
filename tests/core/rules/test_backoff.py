"""Attempts that fail come back later (QUEUE CONFIG .. BACKOFF, spec/state-machine 8.6)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Change,
    CloseSession,
    ConfigureQueue,
    Done,
    Due,
    Empty,
    End,
    Feedback,
    Get,
    GetWith,
    Handed,
    How,
    JobState,
    JobView,
    Kick,
    Later,
    Number,
    OpenSession,
    Operation,
    Order,
    Put,
    PutWith,
    QueueChange,
    Rearmed,
    Return,
    Selector,
    Then,
    Tick,
)
from tests.core.helpers.logs import restored, snapshot_of
from tests.core.model.jobs import random_bits
from tests.core.rules.test_numbers import Cluster

FIRST_MS, MAX_MS = 2_000, 15_000
GET = Get(("q",))


@pytest.fixture
def cluster() -> Cluster:
    cluster = Cluster()
    cluster.do(ConfigureQueue("q", QueueChange(backoff_ms=FIRST_MS, backoff_max_ms=MAX_MS), create=True))
    cluster.do(Put("q", 0, b"a"))
    return cluster


def delayed(cluster: Cluster) -> JobView:
    """Return the only DELAYED job of the queue."""
    (job,) = cluster.machine.peek_queue("q", JobState.DELAYED, 2)
    return job


def wait_ms(cluster: Cluster) -> int:
    """Return for how long the only DELAYED job waits."""
    due_ms = delayed(cluster).due_ms
    assert due_ms is not None
    return due_ms - cluster.now_ms


def taken(cluster: Cluster, get: Get = GET) -> int:
    """Take a job; returns its id."""
    (handed,) = cluster.do(get)
    assert isinstance(handed, Handed)
    return handed.id


FAILURES: dict[str, Operation] = {
    "plain": Later(1),
    "several": End((1, 9), How.LATER),
    "with a reason": End(1, How.LATER, reason="why"),
    "with a priority": End(1, How.LATER, priority=3),
    "with feedback": End(1, How.LATER, feedback=Feedback.SLOW, ran_ms=9),
}
OTHERS: dict[str, Operation] = {
    "DELAY": End(1, How.LATER, Due(0)),
    "AT": End(1, How.LATER, Due(0, 5)),
    "FIRST": End(1, How.LATER, first=True),
    "YIELD": End(1, How.LATER, yielded=True),
    "returned": Return(1),
}


@pytest.mark.parametrize("name", FAILURES)
def test_each_of_these_is_a_failed_attempt(cluster: Cluster, name: str) -> None:
    taken(cluster)
    cluster.do(FAILURES[name])
    assert FIRST_MS - FIRST_MS // 10 <= wait_ms(cluster) <= FIRST_MS
    assert cluster.do(GET, after_ms=1_000) == [Empty(True)]
    assert cluster.do(GET, after_ms=1_000) != [Empty(True)]


@pytest.mark.parametrize("name", OTHERS)
def test_none_of_these_is(cluster: Cluster, name: str) -> None:
    taken(cluster)
    cluster.do(OTHERS[name])
    assert cluster.machine.peek_queue("q", JobState.DELAYED, 1) == []
    taken(cluster)


def test_the_delay_doubles_up_to_the_greatest(cluster: Cluster) -> None:
    waits = []
    for _ in range(5):
        cluster.do(Later(taken(cluster)))
        waits.append(wait_ms(cluster))
        cluster.do(Tick(), after_ms=waits[-1])
    for wait, full_ms in zip(waits, (2_000, 4_000, 8_000, 15_000, 15_000), strict=True):
        assert full_ms - full_ms // 10 <= wait <= full_ms


def test_the_tenth_is_drawn_by_the_bits_of_the_entry_and_the_id(cluster: Cluster) -> None:
    cluster.do(*[Put("q", 0, b"b")] * 9)
    cluster.do(GetWith(GET, 10))
    machine = cluster.machine
    machine.apply(machine.index + 1, cluster.now_ms, 2**64 - 3, [Later(number) for number in range(1, 11)])
    waits = sorted((job.due_ms or 0) - cluster.now_ms for job in machine.peek_queue("q", JobState.DELAYED, 10))
    assert waits == sorted(2_000 - random_bits(2**64 - 3 + number) * 201 // 2**64 for number in range(1, 11))
    assert len({*waits}) > 5


def test_the_end_of_a_lease_is_a_failed_attempt(cluster: Cluster) -> None:
    taken(cluster, Get(("q",), 100, Then.LATER))
    cluster.do(Tick(), after_ms=200)
    assert FIRST_MS - FIRST_MS // 10 <= wait_ms(cluster) <= FIRST_MS


def test_so_is_the_end_of_a_session_that_nobody_closes(cluster: Cluster) -> None:
    cluster.do(OpenSession(7, 1_000, "", ""))
    taken(cluster, Get(("q",), session=1))
    cluster.do(Tick(), after_ms=2_000)
    assert FIRST_MS - FIRST_MS // 10 <= wait_ms(cluster) <= FIRST_MS


@pytest.mark.parametrize("first", [False, True])
def test_but_not_that_of_one_that_is_closed(cluster: Cluster, first: bool) -> None:
    cluster.do(OpenSession(7, 60_000, "", ""))
    taken(cluster, Get(("q",), session=1))
    cluster.do(CloseSession(1, release=True, first=first))
    taken(cluster)


@pytest.mark.parametrize("lapsed", [False, True])
def test_the_rest_of_the_jobs_of_a_session_goes_back_as_the_first_did(cluster: Cluster, lapsed: bool) -> None:
    """A thousand go with one entry, others with the next; a snapshot knows how the session has ended."""
    jobs = 1_500
    cluster.do(*[Put("q", 0, b"a")] * (jobs - 1))
    cluster.do(OpenSession(7, 1_000, "", ""))
    cluster.do(GetWith(Get(("q",), session=1), jobs))
    if lapsed:
        cluster.do(Tick(), after_ms=2_000)
    else:
        cluster.do(CloseSession(1, release=True))
    assert len([*cluster.machine.running()]) == 500
    cluster.machine = restored(snapshot_of(cluster.machine))
    cluster.do(Tick(), after_ms=16)
    counts = cluster.machine.counts("q")
    assert counts is not None
    assert (counts.ready, counts.delayed, counts.running) == ((0, jobs, 0) if lapsed else (jobs, 0, 0))


def test_a_job_that_dies_does_not_wait(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(tries=1)))
    cluster.do(Later(taken(cluster)))
    assert cluster.machine.peek_queue("q", JobState.DELAYED, 1) == []
    assert [job.queue for job in cluster.machine.peek_queue("q", JobState.DEAD, 2)] == ["q_dead"]


def test_the_time_for_which_it_was_put_stays(cluster: Cluster) -> None:
    at_ms = cluster.now_ms + 50
    cluster.do(Done(taken(cluster)))
    cluster.do(PutWith(Put("q", 0, b"b"), Due(0, at_ms)))
    cluster.do(Tick(), after_ms=100)
    cluster.do(Later(taken(cluster)))
    assert delayed(cluster).at_ms == at_ms
    assert wait_ms(cluster) > 1_000


def test_a_periodic_job_keeps_its_rhythm(cluster: Cluster) -> None:
    cluster.do(Done(taken(cluster)))
    at_ms = cluster.now_ms
    cluster.do(PutWith(Put("q", 0, b"b"), every_ms=60_000))
    cluster.do(Later(taken(cluster)))
    cluster.do(Tick(), after_ms=2_000)
    assert cluster.do(Done(taken(cluster))) == [Rearmed(at_ms + 60_000)]


def test_a_later_time_that_was_set_while_it_ran_counts(cluster: Cluster) -> None:
    number = taken(cluster)
    at_ms = cluster.now_ms + 60_000
    cluster.do(Change(Selector(number), when=Due(0, at_ms)), Later(number))
    assert delayed(cluster).due_ms == at_ms


def test_a_change_of_anything_but_the_time_lets_it_wait_on(cluster: Cluster) -> None:
    cluster.do(Done(taken(cluster)), PutWith(Put("q", 0, b"b"), key="k"))
    cluster.do(Later(taken(cluster)))
    before = delayed(cluster)
    assert cluster.do(Change(Selector(queue="q", key="k"), priority=5, data=b"c")) == [Accepted()]
    after = delayed(cluster)
    assert (after.due_ms, after.seq, after.priority, after.data) == (before.due_ms, before.seq, 5, b"c")
    cluster.do(Change(Selector(queue="q", key="k"), when=Due(0)))
    taken(cluster)


def test_it_is_the_delay_of_a_numbered_job(cluster: Cluster) -> None:
    cluster.do(Done(taken(cluster)), PutWith(Put("q", 0, b"b"), number=True))
    cluster.do(Later(taken(cluster)))
    job = delayed(cluster)
    assert job.counts is not None
    assert job.counts.delay_ms == wait_ms(cluster)
    cluster.do(Tick(), after_ms=2_000)
    assert job.number is not None
    taken(cluster, Get(("q",), 100, Then.LATER))
    cluster.do(Tick(), after_ms=200)
    expired = delayed(cluster)
    assert expired.counts is not None
    assert expired.counts.delay_ms == wait_ms(cluster)
    cluster.do(GetWith(Get(None), number=job.number))
    assert [one.id for one in cluster.machine.running()] == [4]
    cluster.do(Later(4), Kick("", 1, selector=Number(job.number)))
    taken(cluster)


def test_in_the_order_of_time_it_becomes_active_when_it_comes_back(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(order=Order.TIME)))
    cluster.do(Done(taken(cluster)), PutWith(Put("q", 0, b"b"), Due(0, 5)))
    cluster.do(Later(taken(cluster)), PutWith(Put("q", 0, b"c"), Due(0, 10)))
    cluster.do(Tick(), after_ms=2_000)
    assert [job.data for job in cluster.machine.peek_queue("q", JobState.READY, 2)] == [b"c", b"b"]


def test_off_ends_it_for_attempts_that_fail_later(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"b"))
    cluster.do(Later(taken(cluster)), ConfigureQueue("q", QueueChange(backoff_ms=0)))
    settings = cluster.machine.queue_settings("q")
    assert settings is not None
    assert (settings.backoff_ms, settings.backoff_max_ms) == (0, 0)
    cluster.do(Later(taken(cluster)))
    counts = cluster.machine.counts("q")
    assert counts is not None
    assert (counts.ready, counts.delayed) == (1, 1)
