"""The READY jobs of an item by group: the first one of each is found, whatever came and went."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.store.items import item as limits
from sockpqd.core.store.items.item import ItemQueue
from sockpqd.core.store.items.items import Items
from sockpqd.core.store.job import Extras, Job, group_of
from sockpqd.core.store.queues import Queues

GROUPS = (None, "a", "b", "c", "q")         # without one, and with the one of the queue's name, it is the queue's own


def job(random: Random, seq: int, groups: tuple[str | None, ...] = GROUPS) -> Job:
    """A job of the queue q."""
    group = random.choice(groups)
    return Job(random.choice((0, 0, 3)), 0, seq, "q", b"", "i", 0, None, None if group is None else Extras(group=group))


def items_and_queue() -> tuple[Items, ItemQueue]:
    """Return items of which one, i, has no job yet, and its jobs in the queue q."""
    items = Items(Queues())
    return items, items.open("i").open("q")


def first_of_each(jobs: list[Job]) -> list[Job]:
    """Return the first job of each group, in order."""
    firsts: dict[str, Job] = {}
    for one in sorted(jobs):
        firsts.setdefault(group_of(one), one)
    return [*firsts.values()]


def assert_first_of_each(queue: ItemQueue, jobs: list[Job]) -> None:
    """Assert that the first job of each group is found, and looked at no more than necessary."""
    assert [*queue.ready] == sorted(jobs)
    found = [*queue.firsts()] if jobs else []
    assert found == (sorted(jobs) if len(jobs) <= limits.LOOKED_AT else first_of_each(jobs))


@pytest.mark.parametrize("looked_at", [1, 4, 20])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_job_of_each_group_is_found(seed: int, looked_at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOOKED_AT", looked_at)
    random, (items, queue) = Random(seed), items_and_queue()
    jobs: list[Job] = []
    for seq in range(1500):
        fills = seq // 100 % 2 == 0         # and drains in turn, often to the end
        if not jobs or random.random() < (0.8 if fills else 0.2):
            jobs.append(job(random, random.choice((seq, -seq)), GROUPS if seq // 300 % 2 else (None, "q", None, "a")))
            items.add(items.open("i"), jobs[-1])
        else:
            jobs.sort()
            items.remove(jobs.pop(random.choice((0, 0, random.randrange(len(jobs))))))
        assert_first_of_each(queue, jobs)


def test_another_group_may_come_to_very_many_jobs_and_leave_them() -> None:
    random, (items, queue) = Random(1), items_and_queue()
    jobs = [job(random, seq, (None, "q")) for seq in range(2500)]
    for one in jobs:
        items.add(items.open("i"), one)
    assert queue.groups is None, "no other group has been there"
    assert_first_of_each(queue, jobs)
    for seq in (3000, -1):
        other = job(random, seq, ("a",))
        items.add(items.open("i"), other)
        assert_first_of_each(queue, [*jobs, other])
        items.remove(other)
        assert_first_of_each(queue, jobs)
