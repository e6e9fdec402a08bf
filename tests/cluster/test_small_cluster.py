"""Whole nodes in simulated time: elections, commits, failures."""

from __future__ import annotations

import pytest

from sockpqd.core import Done, Finished, Get, Handed, Put, Stored
from tests.cluster.helpers.small_cluster import SmallCluster


@pytest.mark.parametrize("count", [1, 2, 3, 5])
def test_a_new_cluster_elects_a_leader_and_acknowledges(count: int) -> None:
    world = SmallCluster(count)
    leader = world.leader()
    put = leader.propose(Put("q", 0, b"body"))
    get = leader.propose(Get(("q",)))
    world.run_until(lambda: get.state == "applied")
    assert put.reply == Stored()
    assert get.reply == Handed(1, "q", 0, b"body")
    done = leader.propose(Done(1))
    world.run_until(lambda: done.state == "applied")
    assert done.reply == Finished(queue_done=True)
    world.run_until(world.settled)
    assert len(world.states()) == 1


def test_a_leader_that_dies_is_replaced_and_nothing_acknowledged_is_missing() -> None:
    world = SmallCluster(3)
    for k in range(20):
        world.put_now(b"%d" % k)
    world.kill(world.leader().name)
    world.put_now(b"20")
    assert world.bodies(world.leader().name) == [b"%d" % k for k in range(21)]


def test_a_dead_leader_is_replaced_early_and_a_silent_one_within_a_second_and_a_half() -> None:
    gaps = []
    for seed in range(20):
        world = SmallCluster(3, seed)
        name = world.leader().name
        start = world.now
        world.kill(name)
        world.run_until(world.serving, 5)
        gaps.append(world.now - start)
    assert sorted(gaps)[10] < 0.2
    assert max(gaps) < 0.5
    for seed in range(10):
        world = SmallCluster(3, seed)
        leader = world.leader()
        start = world.now
        world.filter = lambda source, target, message, name=leader.name: name not in (source, target)  # type: ignore[misc]
        world.run_until(lambda w=world, old=leader: any(  # type: ignore[misc]
            node is not old and node.up.leadership.serving for node in w), 5)
        assert world.now - start < 1.5


def test_all_nodes_killed_at_once_lose_nothing_acknowledged() -> None:
    world = SmallCluster(3)
    for k in range(50):
        world.put_now(b"%d" % k)
    for name in world.nodes:
        world.kill(name)
    for name in world.nodes:
        world.start(name)
    assert world.bodies(world.leader().name) == [b"%d" % k for k in range(50)]


def test_a_follower_that_was_away_catches_up() -> None:
    world = SmallCluster(3)
    world.put_now()
    away = world.followers()[0]
    world.kill(away.name)
    for _ in range(30):
        world.put_now()
    world.start(away.name)
    world.run_until(world.settled)
    assert len(world.states()) == 1


def test_a_silent_network_ends_serving_within_the_lease_and_never_two_serve() -> None:
    world = SmallCluster(3)
    old = world.leader()
    world.put_now()
    world.filter = lambda source, target, message: old.name not in (source, target)
    start = world.now
    outcome = old.propose(Put("q", 0, b"lost?"))
    world.turn(old.name)
    world.run_until(lambda: not old.up.leadership.serving, 1.0)
    assert world.now - start < 0.6
    assert outcome.state == "open"
    refused = old.propose(Put("q", 0, b"refused"))
    assert refused.state == "refused"
    world.run(1.2)
    assert outcome.state == "unknown"
    world.leader()
    world.filter = lambda source, target, message: True
    world.heal()
    for pair in list(world.links):
        world.flap(*pair)
    world.run_until(world.settled)
    assert b"refused" not in world.bodies("n1")


def test_a_leader_that_loses_its_connections_ceases_to_serve_at_once() -> None:
    world = SmallCluster(3)
    old = world.leader()
    outcome = old.propose(Put("q", 0, b"not yet proposed"))
    world.cut(old.name, " ".join(node.name for node in world if node is not old))
    world.turn(old.name)
    assert not old.up.leadership.serving
    assert outcome.state == "refused"


def test_what_a_deposed_leader_proposed_is_known_to_be_refused_when_it_was_overwritten() -> None:
    world = SmallCluster(3)
    old = world.leader()
    others = " ".join(node.name for node in world if node is not old)
    world.filter = lambda source, target, message: source != old.name
    outcome = old.propose(Put("q", 0, b"never"))
    world.run(0.005)
    world.filter = lambda source, target, message: True
    world.cut(old.name, others)
    world.run_until(lambda: any(n is not old and n.up.leadership.serving for n in world), 5)
    world.heal()
    world.run_until(lambda: outcome.state != "open", 5)
    assert outcome.state in ("refused", "unknown")
    world.run_until(world.settled)
    assert world.bodies("n1") == []


def test_a_follower_that_was_cut_off_disturbs_nobody_when_it_returns() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    term = leader.up.replica.term
    follower = world.followers()[0].name
    for _ in range(5):
        world.cut(follower, " ".join(n for n in world.nodes if n != follower))
        world.run(3)
        world.heal()
        world.run(3)
    assert world.leader() is leader
    assert leader.up.replica.term == term


def test_offline_hands_leadership_over_and_online_node_may_lead_again() -> None:
    world = SmallCluster(3)
    old = world.leader()
    old.up.leadership.online = False
    old.up.transport.elections.may_campaign = False
    world.run(0.02)
    assert not old.up.leadership.serving
    world.run_until(lambda: world.serving() not in (None, old), 2)


def test_every_node_knows_how_far_the_other_clocks_are_ahead() -> None:
    world = SmallCluster(3, start=False)
    offsets = {"n1": -5_000, "n2": 0, "n3": 70_000}
    for name, offset_ms in offsets.items():
        world[name].wall_offset_ms = offset_ms
        world.start(name)
    world.run(3)
    for node in world:
        leadership, peers = node.up.leadership, node.up.peers.values()
        ahead = {peer.name: leadership.ahead_ms(peer) for peer in peers}
        expected = {name: offsets[name] - offsets[node.name] for name in ahead}
        assert ahead == pytest.approx(expected, abs=50)     # a message is under way for a moment


def test_a_leader_that_hears_nobody_does_not_keep_the_others_from_electing_one() -> None:
    world = SmallCluster(3)
    deaf = world.leader()
    world.filter = lambda source, target, message: target != deaf.name
    begun = world.now
    world.run_until(lambda: world.serving() not in (None, deaf), 5)
    assert world.now - begun < 2.0
    world.filter = lambda source, target, message: True
    world.put_now()
    world.run_until(world.settled, 10)
    assert not deaf.up.replica.is_leader


def test_a_leader_that_is_heard_by_a_minority_only_steps_down() -> None:
    world = SmallCluster(5)
    leader = world.leader()
    near, *rest = (node.name for node in world.followers())
    minority = {leader.name, near}
    world.filter = lambda source, target, message: (source in minority) == (target in minority)
    begun = world.now
    world.run_until(lambda: not leader.up.replica.is_leader, 5)
    assert world.now - begun < 1.0
    world.run_until(lambda: world.serving() in [world[name] for name in rest], 5)


class TestEmptyNode:
    """Issue: a wiped voter breaks every promise."""

    def test_a_wiped_node_votes_only_after_a_leader_has_brought_it_up_to_date(self) -> None:
        world = SmallCluster(3)
        for _ in range(5):
            world.put_now()
        wiped = world.followers()[0]
        world.kill(wiped.name)
        world.wipe(wiped.name)
        leader = world.leader()
        world.cut(wiped.name, leader.name)
        world.start(wiped.name)
        world.run(3)
        assert not wiped.up.journal.voter
        world.kill(leader.name)
        world.run(5)
        assert world.serving() is None, "the wiped node must not help to elect"
        world.start(leader.name)
        world.heal()
        world.run_until(lambda: wiped.up.journal.voter)
        world.run_until(world.settled)
        assert len(world.states()) == 1

    def test_it_is_not_admitted_by_a_leader_that_leads_only_with_its_help(self) -> None:
        world = SmallCluster(3)
        world.leader()
        wiped, other = world.followers()
        world.kill(wiped.name)
        world.wipe(wiped.name)
        world.start(wiped.name)
        world.kill(other.name)
        world.run(2)
        assert not wiped.up.journal.voter
        world.start(other.name)
        world.run_until(lambda: wiped.up.journal.voter, 5)

    def test_a_lone_first_node_waits_for_the_others(self) -> None:
        world = SmallCluster(3, start=False)
        world.start("n1")
        world.start("n2")
        world.run(5)
        assert world.serving() is None
        world.start("n3")
        world.leader()

    def test_bootstrap_overrides(self) -> None:
        world = SmallCluster(3, start=False)
        world.start("n1", bootstrap=True)
        world.start("n2", bootstrap=True)
        world.leader()

    def test_in_a_cluster_of_two_bootstrap_lets_an_empty_node_come_back(self) -> None:
        world = SmallCluster(2)
        world.put_now(b"precious")
        world.run_until(world.settled)
        for name in world.nodes:
            world.kill(name)
        world.wipe("n2")
        world.start("n1")
        world.start("n2", bootstrap=True)
        assert world.leader().name == "n1"
        world.put_now(b"more")
        world.run_until(world.settled)
        assert world.bodies("n2") == [b"precious", b"more"]

    def test_what_a_follower_acknowledged_before_it_lost_its_disk_counts_no_more(self) -> None:
        world = SmallCluster(5)
        world.put_now()
        world.run_until(world.settled)
        leader, (wiped, other, *_) = world.leader(), world.followers()
        world.filter = lambda source, target, message: source != leader.name or target == wiped.name
        outcome = world.put(b"on two disks")
        world.run(0.05)
        world.kill(wiped.name)
        world.wipe(wiped.name)
        world.start(wiped.name)
        world.filter = lambda source, target, message: source != leader.name or target == other.name
        world.flap(leader.name, other.name)
        world.run(0.2)
        assert leader.up.peers[other.name].match == leader.up.journal.last_index
        assert outcome.state == "open"
        world.filter = lambda source, target, message: True
        world.run_until(lambda: outcome.state == "applied" and wiped.up.journal.voter)


def test_large_backlog_reaches_a_follower_in_bounded_messages() -> None:
    world = SmallCluster(3)
    away = world.followers()[0]
    world.kill(away.name)
    for _ in range(12):
        world.put_now(bytes(400_000))
    world.sent.clear()
    world.start(away.name)
    world.run_until(world.settled)
    sizes = [sum(len(e[0]) for e in m.entries) for _, target, m in world.sent
             if target == away.name and type(m).__name__ == "Append"]
    assert max(sizes) < 2 << 20
    assert sum(sizes) < 2 * 12 * 400_000
    assert len(world.states()) == 1
