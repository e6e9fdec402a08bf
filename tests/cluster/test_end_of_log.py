"""A log that looks whole and has lost its end is found by the others' knowledge; a node that forgot everything waits.
"""

from __future__ import annotations

import copy

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.errors import RejoinFailed
from sockpqd.cluster.storage.errors import JournalDamaged
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import SmallCluster


def put(world: SmallCluster, count: int = 5) -> None:
    for number in range(count):
        outcome = world.leader().propose(Put("q", 0, b"job %d" % number))
        world.run(0.1)
        assert outcome.state == "applied"


@pytest.mark.parametrize("leads", [True, False])
def test_an_older_copy_is_found(*, leads: bool) -> None:
    world = SmallCluster(3)
    put(world)
    leader = world.leader().name
    victim = leader if leads else next(node.name for node in world if node.name != leader)
    world.run(1.0)
    older = copy.deepcopy(world[victim].disk)
    put(world)
    world.run(1.0)
    world.kill(victim)
    older.crash()
    world[victim].disk = older
    world.start(victim)
    world.run(2.0)
    failure = world[victim].failure
    assert isinstance(failure, JournalDamaged)
    assert "an older copy was put in its place" in str(failure)


def test_an_older_copy_is_found_after_a_restart_of_all_nodes() -> None:
    world = SmallCluster(3)
    put(world)
    leader = world.leader().name
    victim = next(node.name for node in world if node.name != leader)
    world.run(1.0)
    older = copy.deepcopy(world[victim].disk)
    put(world)
    world.run(2.0)
    for name in ("n1", "n2", "n3"):
        world.kill(name)
    older.crash()
    world[victim].disk = older
    for name in ("n1", "n2", "n3"):
        world.start(name)
    world.run(2.0)
    assert isinstance(world[victim].failure, JournalDamaged)


def test_a_cluster_that_goes_on_from_one_node_by_bootstrap_suspects_nobody() -> None:
    world = SmallCluster(3)
    put(world)
    world.run(2.0)
    kept = next(node.name for node in world if node is not world.leader())
    for name in ("n1", "n2", "n3"):
        world.kill(name)
    world.start(kept)
    journal = world[kept].up.journal
    assert any(journal.acknowledged(name) for name in ("n1", "n2", "n3"))
    world[kept].up.transport.admission.bootstrap()
    assert not any(journal.acknowledged(name) for name in ("n1", "n2", "n3"))
    journal.keep_commit()
    world.run(0.1)
    world.kill(kept)
    world.start(kept)
    assert not any(world[kept].up.journal.acknowledged(name) for name in ("n1", "n2", "n3"))


def test_a_log_that_has_all_of_it_is_not_suspected() -> None:
    world = SmallCluster(3)
    for name in ("n1", "n2", "n3", "n1"):
        put(world, 3)
        world.kill(name)
        world.run(2.0)
        world.start(name)
        world.run(2.0)
    put(world)
    assert all(node.failure is None for node in world)


def test_an_empty_disk_is_not_suspected_as_it_has_no_vote() -> None:
    world = SmallCluster(3)
    put(world)
    world.kill("n2")
    world.wipe("n2")
    world.start("n2")
    world.run(3.0)
    assert world["n2"].failure is None
    assert world["n2"].up.journal.voter


def test_nodes_that_have_forgotten_found_no_cluster_and_say_so() -> None:
    world = SmallCluster(3, start=False)
    for name in ("n1", "n2", "n3"):
        world.start(name).up.journal.forgetful = True
    world.run(limits.REJOIN_S - 1)
    assert not any(node.serving_log for node in world)
    assert all(node.failure is None for node in world)
    world.run(3.0)
    for node in world:
        assert isinstance(node.failure, RejoinFailed)
        assert "found no leader within 30 s" in str(node.failure)


def test_one_that_has_forgotten_is_admitted_by_a_majority_and_stays_when_that_goes() -> None:
    world = SmallCluster(3)
    put(world)
    world.kill("n3")
    world.wipe("n3")
    world.start("n3").up.journal.forgetful = True
    world.run(3.0)
    assert world["n3"].up.journal.voter
    world.kill("n1")
    world.kill("n2")
    world.run(limits.REJOIN_S + 3)
    assert world["n3"].failure is None
