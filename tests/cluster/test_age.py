"""The age of a node's state: what it reports is never younger than the truth."""

from __future__ import annotations

from math import isinf

from tests.cluster.helpers.small_cluster import SmallCluster


def test_a_follower_is_as_old_as_its_last_contact_with_a_leader() -> None:
    world = SmallCluster(3)
    assert all(isinf(node.up.age_s()) for node in world)
    leader = world.leader()
    world.put_now()
    world.run(1)
    assert leader.up.age_s() == 0
    follower, other = world.followers()
    assert all(node.up.age_s() < 0.2 for node in (follower, other))
    world.cut(follower.name, f"{leader.name} {other.name}")
    world.run(5)
    assert 4.5 < follower.up.age_s() < 5.5
    assert other.up.age_s() < 0.2
    world.heal()
    world.run(2)
    assert follower.up.age_s() < 0.2


def test_a_leader_that_was_cut_off_grows_old() -> None:
    world = SmallCluster(3)
    old = world.leader()
    world.cut(old.name, " ".join(node.name for node in world if node is not old))
    world.run(8)
    assert 4 < old.up.age_s() < 8.1
    new = world.leader()
    assert new is not old
    assert new.up.age_s() == 0


def test_a_follower_that_gets_no_entries_grows_old() -> None:
    world = SmallCluster(3)
    world.leader()
    world.run(1)
    follower, _ = world.followers()
    world.filter = lambda source, target, message: target != follower.name or type(message).__name__ != "Append"
    world.put_now()
    world.run(0.5)
    assert follower.up.age_s() > 0.3
    world.filter = lambda source, target, message: True
    world.run(3)
    assert follower.up.lag() == 0
    assert follower.up.age_s() < 0.2
