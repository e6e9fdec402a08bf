"""GROUPBY: what decides the group of each job of a queue, whichever way it comes there (spec/fair 7)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Aborted,
    Accepted,
    BadSetting,
    Batch,
    BindQueue,
    Change,
    ConfigureGroup,
    ConfigureQueue,
    Done,
    Get,
    GetWith,
    GroupBy,
    GroupDecided,
    Handed,
    JobState,
    Kick,
    Later,
    Machine,
    Meta,
    Move,
    MoveJobs,
    Number,
    OnDup,
    Put,
    PutWith,
    QueueChange,
    Sched,
    Selector,
    Spread,
    Stored,
    StoredNumber,
    ToQueues,
    ToTopic,
)
from tests.core.test_groups import Cluster

HEAD = b"tenant: red\nother: blue\n"
BY = {
    "ITEM": QueueChange(sched=Sched.GROUPS, group_by=GroupBy.ITEM),
    "HEAD": QueueChange(sched=Sched.FAIR, group_by=GroupBy.HEAD, group_header="tenant"),
    "USER": QueueChange(sched=Sched.GROUPS, group_by=GroupBy.USER),
}
WANTED = {"ITEM": "i", "HEAD": "red", "USER": "ann"}


def put(queue: str = "q") -> PutWith:
    """A numbered job that has an item, a header and a user."""
    return PutWith(Put(queue, 0, HEAD + b"data", "i"), head=len(HEAD), number=True, user="ann")


def groups(machine: Machine, queue: str = "q") -> list[str | None]:
    """The groups of the READY jobs."""
    return [view.group for view in machine.peek_queue(queue, JobState.READY, 100)]


def take(cluster: Cluster, queue: str = "q") -> Handed:
    """Take the next job of the queue."""
    (job,) = cluster.do(Get((queue,)))
    assert isinstance(job, Handed)
    return job


@pytest.fixture(params=list(BY))
def by(request: pytest.FixtureRequest) -> str:
    """The source of the groups of q."""
    word: str = request.param
    return word


@pytest.fixture
def cluster(by: str) -> Cluster:
    """With queues p, which is plain, and q, which decides the groups of its jobs."""
    cluster = Cluster(queue="settings")
    cluster.do(ConfigureQueue("q", BY[by], create=True))
    cluster.restarts = True
    return cluster


def test_puts_decide_the_group_of_their_jobs(cluster: Cluster, by: str) -> None:
    (reply,) = cluster.do(put())
    assert isinstance(reply, StoredNumber)
    cluster.do(Batch((Put("q", 0, b"", "i"),), atomic=True, user="ann"))
    assert groups(cluster.machine) == [WANTED[by], None if by == "HEAD" else WANTED[by]]
    assert cluster.do(ConfigureGroup(WANTED[by], limit=0)) == [Accepted()]


def test_who_has_no_name_of_a_group_is_of_the_queue(cluster: Cluster) -> None:
    bad = b"tenant: two words\n"
    cluster.do(
        PutWith(Put("q", 0, bad, "two words"), head=len(bad), user="two words"), Put("q", 0, b"tenant: red\n"),
        PutWith(Put("q", 0, b"", "x" * 256), user="x" * 256),
        PutWith(Put("q", 0, b"other: x\ntenant: \n"), head=18, user=""),
    )
    assert groups(cluster.machine) == [None] * 4


def test_a_replaced_job_is_of_the_group_of_the_new_one(cluster: Cluster, by: str) -> None:
    first = PutWith(Put("q", 0, b"", "other"), key="k", user="bob")
    cluster.do(first, PutWith(put().put, head=len(HEAD), user="ann", key="k", on_dup=OnDup.REPLACE))
    assert groups(cluster.machine) == [WANTED[by]]


def test_a_group_in_a_put_is_refused_and_in_several_queues_ignored(cluster: Cluster, by: str) -> None:
    cluster.do(BindQueue("t", "q", None))
    wish = PutWith(put().put, head=len(HEAD), user="ann", group="mine")
    assert cluster.do(wish, Batch((Put("q", 0, b""), wish), atomic=True)) == [
        GroupDecided(), Aborted(2, GroupDecided()),
    ]
    assert groups(cluster.machine) == []
    several = PutWith(put("").put, head=len(HEAD), user="ann", group="mine", targets=ToQueues(("p", "q")))
    topic = PutWith(put("").put, head=len(HEAD), user="ann", group="mine", targets=ToTopic("t", ""))
    assert cluster.do(several, topic) == [Spread(2), Spread(1)]
    assert groups(cluster.machine) == [WANTED[by]] * 2
    assert groups(cluster.machine, "p") == ["mine"]


def test_whatever_brings_a_job_decides_its_group_by_what_the_job_has(cluster: Cluster, by: str) -> None:
    def arrived() -> str | None:
        (group,) = groups(cluster.machine)
        cluster.do(Done(take(cluster).id))
        return group

    # A user is known at a PUT only: the job keeps the group that it has, here none.
    wanted = None if by == "USER" else WANTED[by]
    plain = PutWith(put().put, head=len(HEAD), number=True)
    to_p = PutWith(Put("p", 0, plain.put.data, "i"), head=len(HEAD), number=True)

    cluster.do(to_p, MoveJobs("p", "q", 10))
    assert arrived() == wanted
    cluster.do(to_p)
    job = take(cluster, "p")
    cluster.do(Move(job.id, "q"))
    assert arrived() == wanted
    cluster.do(ConfigureQueue("p", QueueChange(tries=1, dead="q")), to_p)
    job = take(cluster, "p")
    cluster.do(Later(job.id))
    assert arrived() == wanted                                          # it is dead
    cluster.do(ConfigureQueue("p", QueueChange(tries=0)))
    cluster.do(ConfigureQueue("q", QueueChange(tries=1, dead="d", retain_ms=10**6)))
    cluster.do(PutWith(Put("q", 0, HEAD, "i"), head=len(HEAD), number=True))
    job = take(cluster)
    cluster.do(Later(job.id), Kick("q", 1))
    assert arrived() == wanted                                          # and that was kicked
    (number,) = [reply.number for reply in cluster.do(to_p) if isinstance(reply, StoredNumber)]
    cluster.do(MoveJobs("p", "q", 10))
    arrived()
    cluster.do(Kick("", 1, selector=Number(number), ended=True))
    assert arrived() == wanted


def test_a_job_that_goes_back_or_changes_keeps_its_group(cluster: Cluster, by: str) -> None:
    cluster.do(put())
    job = take(cluster)
    cluster.do(Change(Selector(job.id), item="another", headers=b"tenant: green\n"), Later(job.id))
    assert groups(cluster.machine) == [WANTED[by]]


def test_the_setting_needs_a_choice_by_groups(cluster: Cluster) -> None:
    off = QueueChange(sched=Sched.FIFO)
    assert cluster.do(ConfigureQueue("q", off)) == [BadSetting()]
    assert cluster.do(ConfigureQueue("p", QueueChange(group_by=GroupBy.ITEM))) == [BadSetting()]
    assert cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FIFO, group_by=GroupBy.PUT))) == [Accepted()]
    assert cluster.do(PutWith(put().put, group="mine")) == [Stored()]
    assert groups(cluster.machine) == ["mine"]


def test_the_log_needs_users_while_a_queue_groups_by_them(cluster: Cluster, by: str) -> None:
    assert cluster.machine.groups_by_user == (by == "USER")
    cluster.do(ConfigureQueue("q", QueueChange(group_by=GroupBy.USER)), ConfigureQueue("r", BY["USER"], create=True))
    cluster.do(ConfigureQueue("q", QueueChange(group_by=GroupBy.ITEM)))
    assert cluster.machine.groups_by_user
    cluster.do(ConfigureQueue("r", QueueChange(group_by=GroupBy.PUT)))
    assert not cluster.machine.groups_by_user


def test_meta_shows_the_group(cluster: Cluster, by: str) -> None:
    cluster.do(put())
    (job,) = cluster.do(GetWith(Get(("q",)), meta=True))
    assert isinstance(job, Handed)
    assert isinstance(job.meta, Meta)
    assert job.meta.group == WANTED[by]
    cluster.do(Done(job.id))
