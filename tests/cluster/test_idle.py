"""A node that sleeps until a turn is due: rarely awake, and nothing comes later than with a turn every 10 ms."""

from __future__ import annotations

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.idle import next_turn_at
from sockpqd.cluster.wire.messages import Append
from sockpqd.core import Get, Handed, Operation, Put
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode

QUIET_S = 10.0
BEAT_S = 0.05
BUCKET_S = 0.016                # leases end at most so much later (core/store/leases.py)


def asleep() -> SmallCluster:
    """Return three nodes that exchange only heartbeats."""
    world = SmallCluster(3)
    world.leader()
    world.run(2.0)
    return world


def ask(world: SmallCluster, operation: Operation) -> Outcome:
    """Ask the leader, which a command wakes."""
    leader = world.leader()
    outcome = leader.propose(operation)
    world.turn(leader.name)
    world.run_until(lambda: outcome.state == "applied")
    return outcome


def due_s(world: SmallCluster, node: SmallNode) -> float:
    return next_turn_at(node.up, world.now, world.now) - world.now


def test_quiet_nodes_wake_for_heartbeats_only() -> None:
    world = asleep()
    leader = world.leader()
    before = {node.name: node.woken for node in world}
    world.run(QUIET_S)
    woken = {node.name: node.woken - before[node.name] for node in world}
    assert woken[leader.name] <= QUIET_S / BEAT_S + 1
    assert all(woken[node.name] == 0 for node in world.followers())


def test_a_sleeping_leader_keeps_its_heartbeats_its_lease_and_its_followers() -> None:
    world = asleep()
    leader, term = world.leader(), world.leader().up.replica.term
    begun = len(world.sent)
    world.run(QUIET_S)
    beats = sum(source == leader.name and isinstance(message, Append) for source, _, message in world.sent[begun:])
    assert beats >= 0.9 * 2 * QUIET_S / BEAT_S
    assert leader.up.holds_lease()
    assert leader.serving_log == [True]
    assert {node.up.replica.term for node in world} == {term}


@pytest.mark.parametrize("lease_ms", [105, 1013, 1500])
def test_a_lease_ends_in_time(lease_ms: int) -> None:
    world = asleep()
    ask(world, Put("q", 0, b"x"))
    assert isinstance(ask(world, Get(("q",), lease_ms)).reply, Handed)
    begun_ms, leader = world.leader().machine.clock_ms, world.leader()
    world.run_until(lambda: leader.machine.next_due_ms() is None)
    late_s = (leader.machine.clock_ms - begun_ms - lease_ms) / 1000
    assert 0 <= late_s <= BUCKET_S + limits.TICK_S


def test_a_leader_without_answers_stops_serving_when_its_lease_ends() -> None:
    world = asleep()
    leader = world.leader()
    world.cut(leader.name, " ".join(node.name for node in world.followers()))
    world.run(leader.up.settings.lease_ms / 1000 + 2 * limits.TICK_S)
    assert leader.serving_log == [True, False]


def test_followers_of_a_silent_leader_elect_another_in_time() -> None:
    world = asleep()
    leader = world.leader()
    followers = world.followers()
    world.filter = lambda source, target, message: leader.name not in (source, target)
    settings = leader.up.settings
    world.run_until(
        lambda: any(node.up.leadership.serving for node in followers), 2 * settings.election_max_ms / 1000 + 0.1)


def test_whatever_is_not_in_order_is_looked_at_soon() -> None:
    world = asleep()
    leader, follower = world.leader(), world.followers()[0]
    world.turn(leader.name)                     # acknowledgements may wait for it
    assert due_s(world, follower) > 2 * limits.TICK_S < due_s(world, leader)

    leader.up.leadership.online = False
    assert due_s(world, leader) == pytest.approx(limits.TICK_S), "it hands leadership over"
    leader.up.leadership.online = True
    next(iter(leader.up.peers.values())).choked = True
    assert due_s(world, leader) == pytest.approx(limits.TICK_S), "a peer must catch up"
    next(iter(leader.up.peers.values())).choked = False
    assert due_s(world, leader) > 2 * limits.TICK_S

    follower.up.transport.elections.leader_lost()
    assert due_s(world, follower) == pytest.approx(limits.TICK_S), "an election may be due"


def test_a_large_message_on_its_way_keeps_the_election_timer_at_bay_after_a_long_sleep() -> None:
    world = asleep()
    leader, follower = world.leader(), world.followers()[0]
    slept_s = 0.09
    follower.up.transport.context.now = world.now - slept_s     # when it took its last turn
    follower.up.transport.receiving(leader.name, world.now)
    assert follower.up.transport.elections.heard_at == world.now
