"""QUEUE MOVE: which jobs go, what they take with them, what refuses them, and in what portions."""

from __future__ import annotations

from typing import Any

import pytest

from sockpqd.core import (
    Accepted,
    Await,
    Configure,
    ConfigureQueue,
    Done,
    Due,
    End,
    Get,
    Handed,
    How,
    JobAwaited,
    JobExists,
    JobState,
    Machine,
    Moved,
    MoveJobs,
    Number,
    Order,
    Overflow,
    PauseQueue,
    Put,
    PutWith,
    QueueChange,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    limits,
)
from tests.core.handlers.test_work import STEPS_PER_WORK, fill, steps_of, work_of
from tests.core.rules.test_numbers import Cluster

ALL = 2**31


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def bury(cluster: Cluster, queue: str, data: bytes, **options: Any) -> None:
    """Return a dead job of the queue, with an error and a reason."""
    cluster.do(PutWith(Put(queue, 0, data), **options))
    cluster.do(End(cluster.take(queue).id, How.BURY, reason="why", text=b"because"))


def test_jobs_go_in_their_order_with_all_they_have(cluster: Cluster) -> None:
    plain = cluster.put(b"first", key="k", group="g", lease_ms=5, head=2, ttl_ms=700)
    cluster.do(Put("q", 5, b"urgent", "x"), Put("q", 0, b"last"))
    cluster.do(Put("p", 0, b"there"), Put("q", 0, b"late"))
    assert cluster.do(MoveJobs("q", "p", ALL)) == [Moved(4)]
    jobs = cluster.machine.peek_queue("p", JobState.READY, 9)
    assert [(job.data, job.priority, job.item) for job in jobs] == [
        (b"urgent", 5, "x"), (b"first", 0, None), (b"there", 0, None), (b"last", 0, None), (b"late", 0, None),
    ]       # the second keeps the place of its number
    moved = next(job for job in jobs if job.data == b"first")
    assert (moved.number, moved.key, moved.group, moved.own_lease_ms, moved.head) == (plain, "k", "g", 5, 2)
    assert cluster.machine.counts("q") is None


def test_a_failed_job_starts_over(cluster: Cluster) -> None:
    number = cluster.put(b"job")
    cluster.do(End(cluster.take().id, How.LATER, reason="why", text=b"because"))
    cluster.do(MoveJobs("q", "p", ALL))
    (job,) = cluster.machine.peek_queue("p", JobState.READY, 9)
    assert (job.attempts, job.reason, job.error_bytes, job.number) == (0, None, 0, number)
    assert cluster.counts(number).reserves == 1


def test_only_so_many_go(cluster: Cluster) -> None:
    cluster.do(*[Put("q", 0, b"%d" % at) for at in range(5)])
    assert cluster.do(MoveJobs("q", "p", 2)) == [Moved(2)]
    assert (cluster.ready("p"), cluster.ready()) == ([b"0", b"1"], [b"2", b"3", b"4"])


def test_delayed_running_and_buried_jobs_stay(cluster: Cluster) -> None:
    cluster.do(Put("q", 9, b"running"), Put("q", 8, b"buried"), PutWith(Put("q", 0, b"later"), Due(1000)))
    cluster.take()
    cluster.do(End(cluster.take().id, How.BURY, here=True))
    assert cluster.do(MoveJobs("q", "p", ALL)) == [Moved(0)]


def test_those_that_item_limit_withholds_go_in_their_place(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(item_limit=1)))
    cluster.do(Put("q", 0, b"a", "x"), Put("q", 0, b"b", "x"), Put("q", 0, b"c"))
    assert cluster.do(MoveJobs("q", "p", ALL)) == [Moved(3)]
    assert cluster.ready("p") == [b"a", b"b", b"c"]


def test_dead_ones_of_one_queue_go(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("other", QueueChange(tries=9, dead="q_dead")))
    for queue, data in ("q", b"a"), ("other", b"b"), ("q", b"c"):
        bury(cluster, queue, data)
    cluster.do(Put("q_dead", 0, b"d"))
    assert cluster.do(MoveJobs("q_dead", "p", ALL, "q")) == [Moved(2)]
    assert (cluster.ready("p"), cluster.ready("q_dead")) == ([b"a", b"c"], [b"b", b"d"])
    job = cluster.machine.peek_queue("p", JobState.READY, 9)[0]
    assert (job.reason, job.error_bytes, job.attempts) == (None, 0, 0)
    counts = cluster.machine.counts("q")
    assert counts is None or not counts.dead


def test_dead_ones_that_lie_elsewhere_are_passed_in_portions(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PORTION_MAX", 2)
    for data in b"a", b"b", b"c":
        bury(cluster, "q", data)
    cluster.do(ConfigureQueue("q", QueueChange(tries=9, dead="elsewhere")))
    bury(cluster, "q", b"d")
    move = MoveJobs("elsewhere", "p", ALL, "q")
    (first,) = cluster.do(move)
    assert isinstance(first, Moved)
    assert (first.count, first.left) == (0, 2)
    bury(cluster, "q", b"e")            # is not looked at, as it was not there
    assert cluster.do(MoveJobs("elsewhere", "p", ALL, "q", first.left, first.behind)) == [Moved(1)]
    assert cluster.ready("p") == [b"d"]
    assert cluster.ready("elsewhere") == [b"e"]


def test_a_periodic_job_that_was_dead_begins_again(cluster: Cluster) -> None:
    bury(cluster, "q", b"job", every_ms=100)
    cluster.do(MoveJobs("q_dead", "p", ALL))
    job = cluster.take("p")
    cluster.do(Done(job.id))
    assert [one.data for one in cluster.machine.peek_queue("p", JobState.DELAYED, 9)] == [b"job"]


@pytest.mark.parametrize(("setting", "refusal"), [
    (ConfigureQueue("p", QueueChange(capacity=1)), QueueFull()),
    (PauseQueue("p", incoming=True, outgoing=False), QueuePaused()),
    (Configure(autocreate=False), QueueNotFound()),
    (PutWith(Put("p", 0, b""), key="k"), JobExists()),
])
def test_what_the_other_queue_refuses_ends_it(cluster: Cluster, setting: Any, refusal: Any) -> None:
    cluster.do(Put("q", 0, b"a"), PutWith(Put("q", 0, b"b"), key="k"), Put("q", 0, b"c"), setting)
    moved = 1 if refusal in (QueueFull(), JobExists()) else 0
    assert cluster.do(MoveJobs("q", "p", ALL)) == [Moved(moved, refusal=refusal)]
    assert cluster.ready() == [b"a", b"b", b"c"][moved:]


def test_the_oldest_make_room(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("p", QueueChange(capacity=2, overflow=Overflow.DROPOLDEST)))
    cluster.do(*[Put("q", 0, b"%d" % at) for at in range(5)])
    assert cluster.do(MoveJobs("q", "p", ALL)) == [Moved(5)]
    assert cluster.ready("p") == [b"3", b"4"]


def test_each_is_an_event_and_the_empty_queue_is_finished(cluster: Cluster) -> None:
    cluster.do(Put("q", 3, b"a"), Put("q", 2, b"b"))
    cluster.machine.record(["PUT", "FINQ", "DONE"])
    applied = cluster.machine.apply(cluster.machine.index + 1, cluster.now_ms, 1, [MoveJobs("q", "p", ALL)])
    assert [(event.type, event.name, *event.words) for event in applied.events] == [
        ("PUT", "p", 3), ("PUT", "p", 2), ("FINQ", "q"),
    ]
    assert list(applied.effects.ready) == ["p"]


def test_its_end_is_still_awaited(cluster: Cluster) -> None:
    number = cluster.put(b"job")
    (asked,) = cluster.do(Await(Number(number)))
    assert isinstance(asked, JobAwaited)
    cluster.machine.keep_watch(asked.job)
    cluster.do(MoveJobs("q", "p", ALL))
    job = cluster.take("p")
    applied = cluster.machine.apply(cluster.machine.index + 1, cluster.now_ms, 1, [Done(job.id)])
    assert list(applied.effects.outcomes or ()) == [asked.job]


def test_a_queue_that_numbers_its_jobs_numbers_them(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("p", QueueChange(numbered=True, order=Order.TIME)), Put("q", 0, b"a"))
    cluster.do(MoveJobs("q", "p", ALL))
    (job,) = cluster.machine.peek_queue("p", JobState.READY, 9)
    assert job.number is not None
    assert cluster.machine.peek(Number(job.number)) is not None


def test_an_unknown_queue_is_not_found_but_one_that_became_empty_is_at_its_end(cluster: Cluster) -> None:
    assert cluster.do(ConfigureQueue("empty", QueueChange(), create=True)) == [Accepted()]
    assert cluster.do(
        MoveJobs("none", "p", ALL), MoveJobs("empty", "p", ALL), MoveJobs("none", "p", ALL, left=3),
    ) == [QueueNotFound(), Moved(0), Moved(0)]


def test_one_operation_moves_a_portion_of_what_was_there(cluster: Cluster) -> None:
    cluster.do(*[Put("q", 0, b"") for _ in range(2500)])
    assert cluster.do(MoveJobs("q", "p", ALL)) == [Moved(1000, 1500)]
    cluster.do(*[Put("q", 7, b"") for _ in range(2000)])
    assert cluster.do(MoveJobs("q", "p", ALL - 1000, left=1500)) == [Moved(1000, 500)]
    assert cluster.do(MoveJobs("q", "p", ALL - 2000, left=500)) == [Moved(500)]
    assert cluster.do(MoveJobs("q", "p", 1200)) == [Moved(1000, 1000)]


def test_a_portion_has_limited_data(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PORTION_BYTES_MAX", 100)
    cluster.do(*[Put("q", 0, b"%040d" % at) for at in range(5)])
    assert cluster.do(MoveJobs("q", "p", 4)) == [Moved(2, 3)]


@pytest.mark.parametrize("died", [None, "q"])
def test_its_cost_bounds_its_steps(died: str | None) -> None:
    machine = Machine()
    fill(machine, (PutWith(Put("q", 0, b""), key=str(at), group=str(at % 9)) for at in range(1000)))
    if died is not None:
        fill(machine, (Get(("q",)) for _ in range(1000)))
        fill(machine, (End(at, How.BURY) for at in range(1, 1001)))
    move = MoveJobs("q" if died is None else "q_dead", "p", ALL, died)
    work = work_of(machine, move)
    assert steps_of(machine, move) <= STEPS_PER_WORK * work
    assert len(machine.peek_queue("p", JobState.READY, 2000)) == 1000


def test_handed_out_it_is_a_job_of_the_other_queue(cluster: Cluster) -> None:
    cluster.do(Put("q", 0, b"a"), MoveJobs("q", "p", ALL))
    (job,) = cluster.do(Get(("p",)))
    assert isinstance(job, Handed)
    assert cluster.machine.queue_of(job.id) == "p"
