"""A node writes snapshots and cuts its journal by itself."""

from __future__ import annotations

import itertools

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.limits import COMPACTION_REST_S as REST_S
from sockpqd.core import Done, Get, Handed
from tests.cluster.helpers.small_cluster import SmallCluster

ENTRIES = 50


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallCluster:
    monkeypatch.setattr(limits, "COMPACTION_ENTRIES", ENTRIES)
    return SmallCluster(3)


def snapshots(world: SmallCluster, seconds: float, *, puts_per_s: int) -> dict[str, list[float]]:
    """Return when each node had written one, while jobs are put."""
    found: dict[str, list[float]] = {node.name: [] for node in world}
    newest = {node.name: node.up.store.newest_index for node in world}
    end = world.now + seconds
    while world.now < end:
        world.put(b"x")
        world.run(1 / puts_per_s)
        for node in world:
            if node.up.store.newest_index != newest[node.name]:
                newest[node.name] = node.up.store.newest_index
                found[node.name].append(world.now)
    return found


def test_one_node_after_the_other_writes_a_snapshot(world: SmallCluster) -> None:
    world.leader()
    found = snapshots(world, 3.5 * REST_S, puts_per_s=20)
    assert all(len(times) in (3, 4) for times in found.values()), found
    times = sorted(itertools.chain(*found.values()))
    apart = [later - earlier for earlier, later in itertools.pairwise(times)]
    assert min(apart) > 0.9 * REST_S / 3, found


def test_a_journal_that_is_far_too_long_is_cut_at_once(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    world.leader()
    monkeypatch.setattr(limits, "COMPACTION_BYTES_MAX", 1000)
    found = snapshots(world, REST_S, puts_per_s=20)
    assert all(len(times) >= 3 for times in found.values()), found


def test_a_node_without_room_does_not_wait(world: SmallCluster) -> None:
    world.leader()
    for node in world:
        node.up.capacity.marked = True
    found = snapshots(world, REST_S, puts_per_s=20)
    assert all(len(times) >= 3 for times in found.values()), found


def test_a_node_that_starts_with_a_long_journal_does_not_wait(world: SmallCluster) -> None:
    world.leader()
    snapshots(world, 1.5 * ENTRIES / 20, puts_per_s=20)
    world.kill("n3")
    world.start("n3")
    assert snapshots(world, 0.5, puts_per_s=20)["n3"]


def test_a_node_that_is_short_of_room_writes_one_if_that_frees_some(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "BALLAST_BYTES_MAX", 0)
    world = SmallCluster(3)
    leader = world.leader()
    follower = world.followers()[0]
    follower.disk.free_bytes = 5 << 18                  # for one more segment, and little else

    def work(rounds: int) -> None:
        for _ in range(rounds):
            world.put_now(bytes(50_000))
            handed = leader.propose(Get(("q",), 60_000))
            world.run(0.1)
            assert isinstance(handed.reply, Handed)
            leader.propose(Done(handed.reply.id))
            world.run(0.1)
    work(10)
    assert not follower.up.capacity.short
    work(15)
    assert follower.up.capacity.short
    assert not follower.up.journal.segments.short
    assert follower.up.store.newest_index > 0
    assert leader.up.store.newest_index == 0


def test_few_entries_are_no_reason(world: SmallCluster) -> None:
    world.leader()
    found = snapshots(world, ENTRIES / 20 / 2, puts_per_s=20)
    assert not any(found.values())
