"""SLEEP of a job in a queue that chooses by groups (spec/fair 7)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    Accepted,
    Batch,
    ConfigureGroup,
    ConfigureQueue,
    Done,
    End,
    Feedback,
    Get,
    GroupNotFound,
    How,
    Operation,
    PutWith,
    QueueChange,
    Sched,
    Tick,
)
from sockpqd.core import Put as PutJob
from sockpqd.core import limits as core_limits
from tests.core.helpers.logs import snapshot_of
from tests.core.snapshot.test_fair import frames_of
from tests.core.test_groups import Cluster


def ended(cluster: Cluster, sleep_ms: int, group: str = "a", how: How = How.LATER) -> Operation:
    """The end of the next job, which is of this group, with SLEEP."""
    job = cluster.get()
    assert job is not None
    assert job[1] == group
    return End(job[0], how, first=how is How.LATER, feedback=Feedback.SLEEP, sleep_ms=sleep_ms)


def rates_of(cluster: Cluster) -> list[object]:
    """The windows of groups in a snapshot."""
    return [frame for frame in frames_of(snapshot_of(cluster.machine)) if frame[0] == "rates"]


@pytest.fixture
def cluster() -> Cluster:
    """Restored before each entry, with jobs of two groups, a's first."""
    cluster = Cluster()
    cluster.restarts = True
    for group in "aab":
        cluster.put(group)
    return cluster


@pytest.mark.parametrize("how", [How.LATER, How.DONE])
def test_the_group_of_the_job_gets_nothing_for_so_long(cluster: Cluster, how: How) -> None:
    cluster.do(ended(cluster, 2000, how=how))
    assert cluster.groups() == "b"
    cluster.now_ms += 1999
    assert cluster.groups() == ""
    cluster.now_ms += 1
    cluster.do(Tick())
    assert "q" in cluster.effects.reopened
    assert cluster.groups() == ("aa" if how is How.LATER else "a")


def test_a_shorter_one_ends_none_and_a_longer_one_goes_on(cluster: Cluster) -> None:
    first, second = ended(cluster, 2000), ended(cluster, 1000)
    cluster.do(first, second)
    cluster.now_ms += 1500
    assert cluster.groups() == "b"
    cluster.now_ms += 500
    cluster.do(ended(cluster, 500))
    cluster.now_ms += 499
    assert cluster.groups() == ""
    cluster.now_ms += 1
    assert cluster.groups() == "aa"


def test_it_neither_ends_nor_shortens_a_pause_of_the_group(cluster: Cluster) -> None:
    end = ended(cluster, 1000)
    cluster.do(ConfigureGroup("a", paused=True), end)
    cluster.now_ms += 1000
    assert cluster.groups() == "b"
    cluster.do(ConfigureGroup("a", paused=False))
    assert cluster.groups() == "aa"


@pytest.mark.parametrize(("change", "held"), [
    (QueueChange(sched=Sched.FAIR), False),
    (QueueChange(sched=Sched.FAIR, group_limit=5), True),
    (QueueChange(sched=Sched.FAIR, group_rate=5, group_per_ms=1000), True),
    (QueueChange(sched=Sched.FIFO), False),
    (QueueChange(rate=1000, per_ms=1000), False),
])
def test_only_where_the_queue_holds_groups_and_has_no_rate(
    cluster: Cluster, change: QueueChange, held: bool,
) -> None:
    end = ended(cluster, 1000)
    cluster.do(ConfigureQueue("q", change))
    cluster.do(end)
    cluster.do(ConfigureQueue("q", QueueChange(rate=0)))
    assert cluster.groups(most=3).count("a") == (0 if held else 2)


def test_slow_holds_no_group(cluster: Cluster) -> None:
    job = cluster.get()
    assert job is not None
    cluster.do(End(job[0], How.LATER, feedback=Feedback.SLOW))
    assert cluster.groups() == "aba"


@pytest.mark.parametrize("asleep", [False, True])
def test_it_is_undone_with_its_transaction(cluster: Cluster, asleep: bool) -> None:
    if asleep:
        cluster.do(ConfigureQueue("q", QueueChange(group_rate=9, group_per_ms=1000)))
        first, second = ended(cluster, 300), ended(cluster, 1000)
        cluster.do(first)
    else:
        second = ended(cluster, 1000)
    cluster.do(Tick())
    before = rates_of(cluster)
    cluster.do(Batch((second, PutWith(PutJob("q", 0, b"c"), group="c"), Done(99)), atomic=True))
    assert rates_of(cluster) == before
    cluster.now_ms += 300
    assert cluster.groups() == "ab"


def test_so_many_groups_sleep_at_a_time(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_limits, "GROUPS_MAX", 1)
    first, second = ended(cluster, 1000), ended(cluster, 2000)
    cluster.do(first, second)
    cluster.do(ended(cluster, 3000, "b"))
    assert cluster.groups() == "b"                      # one more than that does not sleep
    cluster.now_ms += 2000
    cluster.do(ended(cluster, 10_000))
    cluster.now_ms += 9_999
    assert cluster.groups() == ""


def test_no_more_groups_of_a_queue_sleep_than_its_settings_can_follow(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(core_limits, "GROUPS_RELISTED_MAX", 3)
    for group in "cd":
        cluster.put(group)
    for group in "abcd":
        cluster.do(ended(cluster, 1000, group, How.DONE))
    for group in "abcd":
        cluster.put(group)
    assert cluster.groups() == "d"
    assert cluster.do(ConfigureQueue("q", QueueChange(sched=Sched.FAIR, group_limit=1))) == [Accepted()]


def test_resume_ends_it_in_all_queues(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("r", QueueChange(sched=Sched.GROUPS), create=True))
    cluster.put("a", queue="r")
    end = ended(cluster, 5000)
    job = cluster.get(Get(("r",)))
    assert job is not None
    cluster.do(end, End(job[0], How.LATER, feedback=Feedback.SLEEP, sleep_ms=5000), ConfigureGroup("a", paused=True))
    assert cluster.do(ConfigureGroup("a", paused=False)) == [Accepted()]
    assert {"q", "r"} <= cluster.effects.reopened.keys()
    assert cluster.groups() == "aab"
    assert cluster.groups(Get(("r",))) == "a"
    assert cluster.do(ConfigureGroup("a", paused=False)) == [GroupNotFound()]


def test_resume_ends_a_sleep_without_a_pause_and_no_rate(cluster: Cluster) -> None:
    cluster.do(ConfigureQueue("q", QueueChange(group_rate=2, group_per_ms=1000)))
    cluster.do(ended(cluster, 5000))
    assert cluster.do(ConfigureGroup("a", paused=False)) == [Accepted()]
    assert cluster.groups() == "ab"                     # the other one is held back by the rate
    cluster.now_ms += 1100
    assert cluster.groups() == "a"
    assert cluster.do(ConfigureGroup("a", paused=False)) == [GroupNotFound()]


def test_a_sleep_that_is_over_is_not_ended(cluster: Cluster) -> None:
    cluster.do(ended(cluster, 1000))
    cluster.now_ms += 1000
    assert cluster.do(ConfigureGroup("a", paused=False)) == [GroupNotFound()]


def test_resume_ends_a_portion_the_first_queues_by_name(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("z", "r", "s")
    for name in names:
        cluster.do(ConfigureQueue(name, QueueChange(sched=Sched.GROUPS), create=True))
        cluster.put("a", queue=name)
        job = cluster.get(Get((name,)))
        assert job is not None
        cluster.do(End(job[0], How.LATER, feedback=Feedback.SLEEP, sleep_ms=5000))
    monkeypatch.setattr(core_limits, "PORTION_MAX", 2)
    assert cluster.do(ConfigureGroup("a", paused=False)) == [Accepted()]
    assert [cluster.groups(Get((name,))) for name in names] == ["", "a", "a"]
    assert cluster.do(ConfigureGroup("a", paused=False)) == [Accepted()]
    assert cluster.groups(Get(("z",))) == "a"
