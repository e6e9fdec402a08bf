"""Queues whose groups are all closed keep nobody from the jobs of others, however many they are (spec/fair 7)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    Get,
    GetWith,
    HandedMany,
    PauseQueue,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Sched,
)
from sockpqd.core import limits as core_limits
from tests.core.test_groups import Cluster

CLOSED = 12
NAMES = tuple(f"closed{number:02}" for number in range(CLOSED))
POLICIES = pytest.mark.parametrize("policy", [one for one in Policy if one is not Policy.FAIR])
ASKED = pytest.mark.parametrize("asked", [None, (*NAMES, "open")], ids=["any queue", "named"])
GROUPS = pytest.mark.parametrize("groups", [1, 10], ids=["few groups", "many groups"])


@pytest.fixture(autouse=True)
def few_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let fewer be left out than are closed."""
    monkeypatch.setattr(core_limits, "CLOSED_QUEUES_MAX", 4)


def closed(groups: int = 1) -> Cluster:
    """Make queues with jobs of paused groups only."""
    cluster = Cluster(Sched.FAIR)
    cluster.do(*[ConfigureGroup(f"g{number}", paused=True) for number in range(groups)])
    for name in NAMES:
        cluster.do(ConfigureQueue(name, QueueChange(sched=Sched.GROUPS), create=True))
        cluster.do(*[PutWith(Put(name, 9, b""), group=f"g{number}") for number in range(groups)])
    return cluster


@GROUPS
@ASKED
@POLICIES
def test_a_job_behind_them_is_found(policy: Policy, asked: tuple[str, ...] | None, groups: int) -> None:
    """Or a client that waits for it would be sent for it again and again, and always in vain."""
    cluster = closed(groups)
    cluster.put("tenant", queue="open")
    assert cluster.get(GetWith(Get(asked), policy=policy)) is not None
    assert cluster.get(GetWith(Get(asked), policy=policy)) is None
    cluster.do(ConfigureGroup("g0", paused=False))
    assert cluster.get(GetWith(Get(asked), policy=policy)) is not None


@ASKED
@POLICIES
def test_also_one_in_a_queue_without_sched_whose_group_is_closed(
    policy: Policy, asked: tuple[str, ...] | None,
) -> None:
    cluster = closed()
    cluster.do(ConfigureGroup("open", paused=True), Put("open", 0, b"plain"))
    assert cluster.get(GetWith(Get(asked), policy=policy)) == (1, "plain")


@ASKED
@POLICIES
def test_several_jobs_are_found(policy: Policy, asked: tuple[str, ...] | None) -> None:
    cluster = closed()
    cluster.put("a", 2, "open")
    cluster.do(ConfigureGroup("open", paused=True), Put("open", 0, b"plain"))
    (reply,) = cluster.do(GetWith(Get(asked), 9, policy))
    assert isinstance(reply, HandedMany)
    assert sorted(job.data for job in reply.jobs) == [b"a", b"a", b"plain"]


def test_where_all_queues_are_closed_none_is_looked_at_twice() -> None:
    """An entry has room for any number of commands that find this out."""
    cluster = closed()
    assert len(cluster.do(*[Get(None)] * 300)) == 300


@POLICIES
def test_named_queues_that_are_closed_do_not_count_as_left_out(policy: Policy) -> None:
    """So the policy decides among the others, as if they were not named."""
    cluster = closed()
    cluster.put("last", queue="b", priority=1)
    cluster.put("first", queue="a", priority=2)
    cluster.put("first", queue="a", priority=2)
    expected = cluster.get(GetWith(Get(("b", "a")), policy=policy))
    again = closed()
    again.put("last", queue="b", priority=1)
    again.put("first", queue="a", priority=2)
    again.put("first", queue="a", priority=2)
    assert again.get(GetWith(Get((*NAMES, "b", "a")), policy=policy)) == expected


# ---- queues in which an item has jobs

HELD = pytest.mark.parametrize("others", [False, True], ids=["all groups closed", "others open"])


def closed_to_item(*, others: bool) -> Cluster:
    """Make queues in which the item has jobs of a paused group only; `others`: with jobs of an open group without item.
    """
    cluster = Cluster(Sched.FAIR)
    cluster.do(ConfigureGroup("g0", paused=True))
    for name in NAMES:
        cluster.do(
            ConfigureQueue(name, QueueChange(sched=Sched.GROUPS), create=True),
            PutWith(Put(name, 9, b"", "x"), group="g0"),
        )
        if others:
            cluster.do(PutWith(Put(name, 9, b""), group="free"))
    return cluster


@HELD
@ASKED
@POLICIES
def test_a_job_of_an_item_behind_them_is_found(policy: Policy, asked: tuple[str, ...] | None, others: bool) -> None:
    cluster = closed_to_item(others=others)
    cluster.put("tenant", queue="open", item="x")
    of_item = GetWith(Get(asked, item="x"), policy=policy)
    assert cluster.get(of_item) == (1, "tenant")
    assert cluster.get(of_item) is None
    cluster.do(ConfigureGroup("g0", paused=False))
    assert cluster.get(of_item) is not None


@ASKED
@POLICIES
def test_later_jobs_of_an_item_are_searched_for_in_the_next_command(
    policy: Policy, asked: tuple[str, ...] | None,
) -> None:
    """Each hand-out may close a group in thousands of queues: one command looks at all of them once."""
    cluster = closed_to_item(others=False)
    cluster.do(*[PutWith(Put("open", 0, b"tenant", "x"))] * 3)
    (reply,) = cluster.do(GetWith(Get(asked, item="x"), 9, policy))
    assert isinstance(reply, HandedMany)
    assert [job.data for job in reply.jobs] == [b"tenant"] * 3, "nothing else has closed"


def test_weights_and_ranks_hold_among_what_is_left_of_an_item() -> None:
    cluster = closed_to_item(others=False)
    cluster.put("second", queue="b", priority=1, item="x")
    cluster.put("first", queue="a", priority=2, item="x")
    by_rank = GetWith(Get((*NAMES, "b", "a"), item="x"), policy=Policy.PRIORITY)
    assert cluster.groups(by_rank) == "firstsecond"


@POLICIES
def test_a_look_for_another_policy_takes_no_paused_group_from_its_level(policy: Policy) -> None:
    """Only a choice by FAIR passes it over; what comes behind it in turn would be another one otherwise."""
    cluster = closed()
    cluster.put("tenant", queue="shut")
    cluster.do(PauseQueue("shut", False, True))
    before = cluster.machine.fair_levels()
    assert cluster.get(GetWith(Get(None), policy=policy)) is None
    assert cluster.machine.fair_levels() == before
    assert cluster.get(GetWith(Get(None), policy=Policy.FAIR)) is None
    assert cluster.machine.fair_levels() != before
