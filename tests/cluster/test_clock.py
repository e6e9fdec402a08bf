"""Replicated time in a cluster, and what its wall clocks do to it."""

from __future__ import annotations

import pytest

from sockpqd.cluster.wire.messages import Info
from sockpqd.core import Due, Get, Handed, Later, NotFound, Put, PutWith, Stored, Then
from tests.cluster.helpers.small_cluster import SmallCluster

HOUR_MS = 3_600_000


def get(world: SmallCluster, expire_ms: int, then: Then = Then.DEFAULT) -> int:
    outcome = world.leader().propose(Get(("q",), expire_ms, then))
    world.run_until(lambda: outcome.state != "open")
    assert isinstance(outcome.reply, Handed)
    return outcome.reply.id


def test_a_lease_ends_on_time_on_an_idle_cluster_and_never_early() -> None:
    world = SmallCluster(3)
    world.put_now()
    get(world, 1000)
    world.run(0.98)
    assert world.leader().machine.total("q").running == 1
    world.run(0.1)
    assert world.leader().machine.total("q").running == 0
    assert world.leader().machine.total("q").jobs == 1


@pytest.mark.parametrize("nodes", [1, 2, 3])
@pytest.mark.parametrize("jump_ms", [-HOUR_MS, HOUR_MS])
def test_a_step_of_all_wall_clocks_ends_no_lease(nodes: int, jump_ms: int) -> None:
    world = SmallCluster(nodes)
    world.put_now()
    number = get(world, 60_000)
    for node in world:
        node.wall_offset_ms = jump_ms
    world.run(1)
    later = world.leader().propose(Later(number))
    world.run_until(lambda: later.state != "open")
    assert not isinstance(later.reply, NotFound)


@pytest.mark.parametrize("error_ms", [-HOUR_MS, -60_000, 60_000, HOUR_MS])
@pytest.mark.parametrize("nodes", [2, 3, 5])
def test_a_node_with_a_wrong_clock_leads_by_the_clocks_of_the_others(nodes: int, error_ms: int) -> None:
    world = SmallCluster(nodes, start=False)
    world["n1"].wall_offset_ms = error_ms
    for name in world.nodes:
        world.start(name)
    take_over(world, "n1")
    world.put_now()
    assert world["n1"].machine.leader == "n1"
    ahead_ms = world["n1"].machine.clock_ms - true_ms(world)
    if nodes == 2:                          # of two clocks nobody knows which is right: none of AT is early
        assert ahead_ms == pytest.approx(min(error_ms, 0), abs=50)
    else:
        assert ahead_ms == pytest.approx(0, abs=50)


def test_a_clock_that_jumps_again_and_again_makes_no_job_early_and_no_lease_short() -> None:
    world = SmallCluster(3)
    asked = world.leader().propose(PutWith(Put("at", 0, b""), Due(at_ms=true_ms(world) + 20_000)))
    world.put_now()
    get(world, 20_000)
    for second in range(19):
        world[f"n{second // 8 + 1}"].wall_offset_ms = (HOUR_MS, 0, -HOUR_MS, -60_000, 60_000, 0)[second % 6]
        if second % 8 == 0:
            for node in world:
                node.wall_offset_ms = 0
        if second in (5, 11):
            world.kill(victim := world.leader().name)
            world.leader()
            world.start(victim)
        world.run(0.9)
    assert asked.reply == Stored()
    machine = world.leader().machine
    assert machine.ready("at") == 0
    assert machine.total("q").running == 1


def test_every_node_knows_what_time_it_is_also_while_nothing_is_logged() -> None:
    world = SmallCluster(3)
    leader, index = world.leader(), world.leader().machine.index
    world.run(10)
    first = world.followers()[0]
    world.kill(first.name)
    world.start(first.name)
    world.run(1)
    assert leader.machine.index == index
    for node in world:
        assert node.up.leadership.time_ms() == pytest.approx(true_ms(world), abs=20)


def test_figures_tell_of_a_wrong_clock_and_of_wrong_time() -> None:
    world = SmallCluster(3)
    world.leader()
    world["n3"].wall_offset_ms = 70_000
    world.run(1)
    errors = {node.name: node.up.leadership.errors_ms() for node in world}
    assert errors == {name: pytest.approx(ahead, abs=20) for name, ahead in {
        "n1": (0, 0), "n2": (0, 0), "n3": (70_000, 0)}.items()}
    for name in ("n1", "n2"):
        world[name].wall_offset_ms = 60_000
    world.run(1)
    assert world["n1"].up.leadership.errors_ms() == pytest.approx((0, -60_000), abs=20)


def test_a_node_that_hears_of_no_majority_compares_nothing() -> None:
    world = SmallCluster(3, start=False)
    world.start("n1")
    world.run(1)
    assert world["n1"].up.leadership.clocks_ms() == []
    assert world["n1"].up.leadership.errors_ms() is None


def test_what_a_node_said_of_its_clock_long_ago_does_not_count() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    silent = world.followers()[0].name
    world.filter = lambda source, target, message: not (source == silent and isinstance(message, Info))
    assert len(leader.up.leadership.clocks_ms()) == 3
    world.run(3)
    assert len(leader.up.leadership.clocks_ms()) == 2


def true_ms(world: SmallCluster) -> int:
    return 1_700_000_000_000 + int(world.now * 1000)


def take_over(world: SmallCluster, name: str) -> None:
    leader = world.leader()
    if leader.name != name:
        leader.up.leadership.handover.begin(name)
        world.run_until(lambda: world.serving() is world[name])
        leader.up.leadership.handover.end()


def test_after_a_failover_a_worker_has_the_grace_to_say_done() -> None:
    world = SmallCluster(3, failover_grace_ms=5_000)
    for lease_ms, grace_s in [(10_000, 5), (1_000, 1)]:     # not more than its lease
        world.put_now()
        get(world, lease_ms, Then.DONE)
        world.run(0.9 * lease_ms / 1000)
        world.kill(world.leader().name)
        died_at = world.now
        world.run_until(lambda: world.serving() is not None)
        world.run(0.9 * grace_s)
        assert world.leader().machine.total("q").running == 1
        world.run(died_at + grace_s + 1.5 - world.now)
        assert world.leader().machine.total("q").running == 0
        for node in world:
            if node.driver is None:
                world.start(node.name)
        world.run(1)


def test_leaders_have_the_smallest_server_id_and_old_ones_get_the_next() -> None:
    world = SmallCluster(3)
    put = world.leader().propose(Put("q", 0, b""))
    world.run_until(lambda: put.state != "open")
    first = world.leader().name
    assert world.leader().machine.server_ids[first] == 1
    world.kill(first)
    second = world.leader()
    ids = second.machine.server_ids
    assert ids[second.name] == min(ids.values())
    assert ids[first] > 3
