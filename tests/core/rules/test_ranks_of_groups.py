"""Policies that look at the first job of each queue look at the first job of its open groups (spec/fair 7)."""

from __future__ import annotations

import pytest

from sockpqd.core import (
    ConfigureGroup,
    ConfigureQueue,
    Get,
    GetWith,
    HandedMany,
    InTurn,
    Policy,
    QueueChange,
    Sched,
)
from sockpqd.core import limits as core_limits
from sockpqd.core.fair import queue_groups
from tests.core.test_groups import Cluster

ASKED = pytest.mark.parametrize("asked", [None, ("q", "r")], ids=["any queue", "named"])
SCHEDS = pytest.mark.parametrize("sched", [Sched.GROUPS, Sched.FAIR])


def shops(sched: Sched) -> Cluster:
    """Return two queues that choose by groups; `r` has the greater jobs, of a paused group, and a small one."""
    cluster = Cluster(sched)
    cluster.do(ConfigureQueue("r", QueueChange(sched=sched), create=True))
    cluster.put("a", priority=5)
    cluster.put("b", queue="r", priority=9, count=2)
    cluster.put("c", queue="r", priority=1)
    cluster.do(ConfigureGroup("b", paused=True))
    return cluster


@ASKED
@SCHEDS
@pytest.mark.parametrize("policy", [Policy.PRIORITY, Policy.OLDEST])
def test_a_queue_counts_by_the_first_job_of_its_open_groups(
    sched: Sched, asked: tuple[str, ...] | None, policy: Policy,
) -> None:
    cluster = shops(sched)
    assert cluster.groups(GetWith(Get(asked), policy=policy)) == "ac"
    cluster.do(ConfigureGroup("b", paused=False))
    assert cluster.groups(GetWith(Get(asked), policy=policy)) == "bb"


@SCHEDS
def test_also_by_place(sched: Sched) -> None:
    assert shops(sched).groups(GetWith(Get(("r", "q")), policy=Policy.PLACE)) == "ac"


@ASKED
@SCHEDS
def test_one_command_ranks_a_queue_again_after_each_job(sched: Sched, asked: tuple[str, ...] | None) -> None:
    cluster = shops(sched)
    cluster.do(ConfigureGroup("b", paused=False), ConfigureGroup("b", limit=1))
    (reply,) = cluster.do(GetWith(Get(asked), 9, Policy.PRIORITY))
    assert isinstance(reply, HandedMany)
    assert b"".join(job.data for job in reply.jobs) == b"bac"


@ASKED
def test_only_open_jobs_of_an_item_count(asked: tuple[str, ...] | None) -> None:
    cluster = shops(Sched.GROUPS)
    for group, queue, priority in (("a", "q", 5), ("b", "r", 9), ("c", "r", 1)):
        cluster.put(group, queue=queue, priority=priority, item="i")
    assert cluster.groups(GetWith(Get(asked, item="i"), policy=Policy.PRIORITY)) == "ac"


@ASKED
def test_a_queue_that_is_passed_over_turns_nothing(asked: tuple[str, ...] | None) -> None:
    """By the names `q` comes after `a`, which gave the last job, then `r`, whose first job is not to be had."""
    cluster = shops(Sched.GROUPS)
    cluster.put("d", priority=9, count=2)
    cluster.put("e", queue="s", priority=9)
    in_turn = GetWith(Get(None if asked is None else ("r", "q", "s")), 3, Policy.PRIORITY, turn=InTurn("q"))
    (reply,) = cluster.do(in_turn)
    assert isinstance(reply, HandedMany)
    expected = "sqq" if asked is None else "qsq"
    assert "".join(job.queue for job in reply.jobs) == expected


def test_of_many_groups_as_many_jobs_are_looked_at_as_a_get_can_afford(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queue_groups, "LOOKED_AT", 4)
    cluster = Cluster(Sched.FAIR)
    cluster.do(ConfigureQueue("r", QueueChange(sched=Sched.FAIR), create=True))
    cluster.put("p", priority=2)
    for number in range(12):
        cluster.put(f"g{number}", queue="r", priority=9 - number)
        cluster.do(ConfigureGroup(f"g{number}", paused=True))
    cluster.put("open", queue="r", priority=0)
    asked = GetWith(Get(("q", "r")), policy=Policy.PRIORITY)
    assert cluster.get(asked) == (1, "open")        # ranked by the fourth job, of priority 6
    cluster.put("open", queue="r", priority=0)
    monkeypatch.undo()
    assert cluster.groups(asked) == "popen"


def test_no_get_moves_more_queues_than_it_may_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core_limits, "CLOSED_QUEUES_MAX", 1)
    cluster = shops(Sched.GROUPS)
    cluster.do(ConfigureQueue("s", QueueChange(sched=Sched.GROUPS), create=True))
    cluster.put("b", queue="s", priority=8)
    cluster.put("d", queue="s", priority=0)
    assert cluster.get(GetWith(Get(None), policy=Policy.PRIORITY)) == (1, "d")
    cluster.put("d", queue="s", priority=0)
    monkeypatch.undo()
    assert cluster.groups(GetWith(Get(None), policy=Policy.PRIORITY)) == "acd"
