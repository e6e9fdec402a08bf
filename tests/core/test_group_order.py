"""GROUPORDER: a job waits while one of its group that stands before it is RUNNING in its queue (spec/fair 7)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    BadSetting,
    Change,
    ConfigureGroup,
    ConfigureQueue,
    Done,
    End,
    Get,
    GetWith,
    Handed,
    HandedMany,
    How,
    Later,
    Move,
    Policy,
    Put,
    PutWith,
    QueueChange,
    QueueNotEmpty,
    Sched,
    Selector,
)
from sockpqd.core import limits as core_limits
from tests.core.test_groups import Cluster

ON = QueueChange(group_order=True)


@pytest.fixture(params=["queue", "FAIR"])
def policy(request: pytest.FixtureRequest) -> Policy | None:
    """The one of the Gets: none, or FAIR."""
    return Policy.FAIR if request.param == "FAIR" else None


@pytest.fixture(params=[Sched.FAIR, Sched.GROUPS])
def cluster(request: pytest.FixtureRequest) -> Cluster:
    """With a queue q that gives the jobs of each group in order."""
    cluster = Cluster(request.param)
    assert cluster.do(ConfigureQueue("q", ON)) == [Accepted()]
    cluster.restarts = True
    return cluster


def batch(cluster: Cluster, count: int, policy: Policy | None = None) -> str:
    """Take this many jobs at once; returns their data."""
    (reply,) = cluster.do(GetWith(Get(("q",)), count, policy))
    return "".join(job.data.decode() for job in reply.jobs) if isinstance(reply, HandedMany) else ""


def take(cluster: Cluster) -> Handed:
    """Hand out the next job of the queue."""
    (reply,) = cluster.do(Get(("q",)))
    assert isinstance(reply, Handed)
    return reply


def test_one_job_of_each_group_at_a_time(cluster: Cluster, policy: Policy | None) -> None:
    for group in "aabbq":
        cluster.put(group)
    cluster.do(Put("q", 0, b"q"))           # of the queue's own group, as the one before
    assert sorted(cluster.groups(GetWith(Get(("q",)), policy=policy))) == ["a", "b", "q"]


def test_count_takes_the_next_jobs_of_one_group_then_of_another(cluster: Cluster, policy: Policy | None) -> None:
    for group in "ababcab":
        cluster.put(group)
    cluster.do(ConfigureGroup("b", limit=2))
    assert batch(cluster, 4, policy) == "aaab"
    assert batch(cluster, 4, policy) == "c"
    cluster.do(Done(1), Done(4))
    assert batch(cluster, 4, policy) == "bb"


def test_a_job_that_stands_before_the_running_ones_is_given(cluster: Cluster) -> None:
    cluster.put("a", 2)
    first = take(cluster)
    cluster.put("a", priority=1)
    second = take(cluster)
    assert second.priority == 1
    cluster.do(Done(second.id))
    assert cluster.get() is None
    cluster.do(Change(Selector(first.id), priority=-1))      # now it would go back behind the other one
    assert cluster.get() == (3, "a")


def test_a_job_that_comes_back_to_its_place_is_the_next(cluster: Cluster) -> None:
    for data in (b"1", b"2", b"3"):
        cluster.do(PutWith(Put("q", 0, data), group="a"))
    cluster.do(End(take(cluster).id, How.LATER, first=True))
    assert take(cluster).data == b"1"
    cluster.do(Later(2))
    assert [take(cluster).data, cluster.get()] == [b"2", None]
    assert "q" in (cluster.do(Move(3, "elsewhere")) and cluster.effects.reopened)
    assert batch(cluster, 9) == "31"


def test_only_jobs_of_this_queue_count(cluster: Cluster) -> None:
    cluster.put("a", 1, queue="other")
    cluster.put("a", 2)
    cluster.do(Get(("other",)))
    assert cluster.groups() == "a"


def test_jobs_of_an_item_wait_for_others_of_their_group(cluster: Cluster, policy: Policy | None) -> None:
    cluster.put("a")
    for group, item in (("a", "i"), ("b", "i"), ("a", "i"), ("b", "i")):
        cluster.do(PutWith(Put("q", 0, group.encode(), item), group=group))
    of_item = GetWith(Get(("q",), item="i"), 9, policy)
    cluster.do(Get(("q",)))
    (reply,) = cluster.do(of_item)
    assert isinstance(reply, HandedMany)
    assert [job.data for job in reply.jobs] == [b"b", b"b"]
    cluster.do(Done(1))
    assert "q" in cluster.effects.reopened
    (reply,) = cluster.do(of_item)
    assert isinstance(reply, HandedMany)
    assert [job.data for job in reply.jobs] == [b"a", b"a"]


def test_no_client_is_called_in_vain(cluster: Cluster) -> None:
    cluster.put("a", 5)
    cluster.put("b", 1)
    assert cluster.machine.ready("q") == 2          # for so many clients, one after the other
    cluster.do(Get(("q",)))
    assert not cluster.effects.reopened
    assert cluster.machine.ready("q") == 1


def test_turning_it_on_counts_what_runs(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(group_order=False)))
    cluster.put("a", 3)
    assert cluster.groups(most=2) == "aa"
    cluster.do(ConfigureQueue("q", ON), Done(1))
    assert cluster.get() is None
    cluster.do(Done(2))
    assert cluster.groups() == "a"


def test_it_is_for_queues_that_choose_among_groups(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FIFO))) == [BadSetting()]
    assert cluster.do(ConfigureQueue("plain", ON)) == [BadSetting()]
    monkeypatch.setattr(core_limits, "GROUPS_RELISTED_MAX", 2)
    cluster.put("a", 4)
    assert batch(cluster, 3) == "aaa"
    off = QueueChange(sched=Sched.FIFO, group_order=False)
    assert cluster.do(ConfigureQueue("q", off)) == [Accepted()]
    assert cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FAIR, group_order=True))) == [QueueNotEmpty()]
