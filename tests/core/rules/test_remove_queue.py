"""QUEUE PURGE of running jobs and of all own ones, and QUEUE DELETE that leaves dead jobs where they lie."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    DeleteQueue,
    Done,
    Due,
    End,
    Get,
    Handed,
    How,
    JobState,
    Kick,
    Later,
    NotFound,
    Purged,
    PurgeQueue,
    Put,
    PutWith,
    QueueChange,
    QueueNotFound,
    Removed,
)
from sockpqd.core import ConfigureQueue as Configured
from tests.core.rules.test_numbers import Cluster

RUNNING = PurgeQueue("q", Purged.RUNNING)


@pytest.fixture
def full() -> Cluster:
    """Return a queue with a job in each state."""
    cluster = Cluster()
    cluster.do(Put("q", 0, b"dead"))
    cluster.do(End(cluster.take().id, How.BURY, reason="why", text=b"because"))
    cluster.do(Put("q", 0, b"buried"))
    cluster.do(End(cluster.take().id, How.BURY, here=True))
    cluster.do(Put("q", 0, b"running"), Get(("q",)), Put("q", 0, b"ready"), PutWith(Put("q", 0, b"delayed"), Due(1000)))
    return cluster


def counts(cluster: Cluster, queue: str = "q") -> tuple[int, ...]:
    found = cluster.machine.counts(queue)
    return (found.ready, found.delayed, found.running, found.dead, found.buried) if found is not None else ()


def test_running_jobs_are_purged_and_their_workers_told(full: Cluster) -> None:
    full.machine.record(["CANCEL", "DONE", "FINQ"])
    applied = full.machine.apply(full.machine.index + 1, full.now_ms, 1, [RUNNING])
    assert applied.replies == [Removed(1)]
    assert [(event.type, event.name, *event.words) for event in applied.events] == [("CANCEL", "q", 3)]
    assert counts(full) == (1, 1, 0, 1, 1)
    assert full.do(Done(3)) == [NotFound()]


def test_all_own_jobs_are_purged_and_dead_ones_stay(full: Cluster) -> None:
    assert full.do(PurgeQueue("q", Purged.OWN)) == [Removed(4)]
    assert full.ready("q_dead") == [b"dead"]
    assert full.do(Kick("q", 1)) == [Removed(1)]


def test_jobs_handed_out_later_are_not_purged() -> None:
    cluster = Cluster()
    cluster.do(*[Put("q", 0, b"") for _ in range(1502)], *[Get(("q",)) for _ in range(1500)])
    assert cluster.do(RUNNING) == [Removed(1000, more=True)]
    before = cluster.machine.next_id
    late = cluster.take()
    assert cluster.do(PurgeQueue("q", Purged.RUNNING, before_id=before)) == [Removed(500)]
    assert cluster.do(Later(late.id)) == [Accepted()]


def test_own_jobs_are_purged_in_portions() -> None:
    cluster = Cluster()
    cluster.do(*[Put("q", 0, b"") for _ in range(1500)], *[Get(("q",)) for _ in range(700)])
    own = PurgeQueue("q", Purged.OWN)
    assert cluster.do(own, own, own) == [Removed(1000, more=True), Removed(500), QueueNotFound()]


def test_a_deleted_queue_may_leave_its_dead_jobs(full: Cluster) -> None:
    assert full.do(DeleteQueue("q", force=True, leave=True)) == [Accepted()]
    (job,) = full.machine.peek_queue("q_dead", JobState.READY, 9)
    assert (job.data, job.reason, job.attempts, job.error_bytes) == (b"dead", "why", 0, 7)
    assert counts(full) == ()
    assert full.do(Kick("q", 1)) == [Removed(0)]


def test_what_is_left_is_a_job_of_the_queue_where_it_lies() -> None:
    cluster = Cluster()
    cluster.do(Configured("q_dead", QueueChange(tries=2)), PutWith(Put("q", 0, b"job"), every_ms=10, key="k"))
    cluster.do(End(cluster.take().id, How.BURY))
    cluster.do(DeleteQueue("q", force=True, leave=True))
    cluster.do(Later(cluster.take("q_dead").id))
    assert cluster.ready("q_dead") == [b"job"]          # that was the first of two attempts
    job = cluster.take("q_dead")
    assert isinstance(job, Handed)
    cluster.do(Done(job.id))
    assert cluster.machine.counts("q_dead") is not None
    assert counts(cluster, "q_dead") == (0, 0, 0, 0, 0)


def test_many_are_left_in_portions() -> None:
    cluster = Cluster()
    cluster.do(*[Put("q", 0, b"") for _ in range(1500)], *[Get(("q",)) for _ in range(1500)])
    cluster.do(End(tuple(range(1, 1501)), How.BURY))
    leave = DeleteQueue("q", force=True, leave=True)
    assert cluster.do(leave, leave, leave) == [Removed(1000, more=True), Accepted(), QueueNotFound()]
    assert counts(cluster, "q_dead")[0] == 1500
