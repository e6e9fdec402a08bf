"""Nodes join and leave a running cluster, one at a time, and nothing is lost or decided twice."""

from __future__ import annotations

import logging

import pytest

from sockpqd.cluster.leader import membership
from sockpqd.cluster.wire.messages import Append, Message, PreVote, RequestVote, TimeoutNow
from sockpqd.core import (
    Accepted,
    ChangeInProgress,
    ChangeMember,
    Joined,
    LastNode,
    MemberChange,
    NodeExists,
    Operation,
    Put,
    Reply,
    UnknownNode,
)
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode


def ask(world: SmallCluster, operation: Operation) -> Outcome:
    """Propose on the leader, as the administration does."""
    outcome = Outcome()
    world.leader().up.leadership.propose_alone(operation, outcome)
    return outcome


def done(world: SmallCluster, operation: Operation) -> Reply:
    """Propose on the leader and wait for the answer."""
    outcome = ask(world, operation)
    world.run_until(lambda: outcome.state != "open")
    assert outcome.state == "applied"
    assert outcome.reply is not None
    return outcome.reply


def add(world: SmallCluster, name: str) -> Reply:
    member = next(member for member in world.members if member.name == name)
    return done(world, ChangeMember(name, MemberChange.JOIN, peer=member.peer, client=member.client))


def remove(world: SmallCluster, name: str) -> Reply:
    return done(world, ChangeMember(name, MemberChange.REMOVE, world.leader().machine.membership.configuration))


def voters(node: SmallNode) -> list[str]:
    return sorted(node.up.transport.quorum.voters)


def joined(world: SmallCluster, name: str) -> None:
    """Add a spare node and wait until it votes."""
    assert isinstance(add(world, name), Joined)
    world.start(name)
    world.run_until(lambda: world[name].up.journal.voter and name in voters(world[name]))


def settled(world: SmallCluster, names: str) -> bool:
    nodes = [world[name] for name in names.split()]
    return (
        len({node.up.replica.applied_index for node in nodes} | {node.up.journal.last_index for node in nodes}) == 1
        and all(voters(node) == names.split() for node in nodes)
    )


def test_a_node_joins_catches_up_and_counts() -> None:
    world = SmallCluster(3, spares=1)
    for _ in range(5):
        world.put_now()
    assert add(world, "n4") == Joined(4)
    world.start("n4")
    world.run_until(lambda: settled(world, "n1 n2 n3 n4"))
    world.run_until(lambda: world["n4"].up.journal.voter)
    assert world["n4"].machine.server_ids["n4"] == 4
    assert len(world.states()) == 1
    first, second = [node for node in world.followers() if node.name != "n4"]
    world.kill(first.name)
    world.put_now(b"three of four")
    world.kill(second.name)
    held = world.leader().propose(Put("q", 0, b"two of four are no majority"))
    world.run(3)
    assert held.state != "applied"


def test_a_learner_counts_for_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(membership.Promotion, "tick", lambda self, leading: None)
    world = SmallCluster(3, spares=1)
    add(world, "n4")
    world.start("n4")
    world.put_now()
    world.run_until(lambda: world.settled() and world["n4"].up.journal.voter)
    leader = world.leader()
    others = [node.name for node in world.followers() if node.name != "n4"]
    for name in others:
        world.cut(name, leader.name)
    held = leader.propose(Put("q", 0, b"on the leader and the learner"))
    world.run_until(lambda: world.serving() not in (None, leader))
    assert held.state != "applied"
    assert world["n4"].up.journal.voter
    assert not [m for _, target, m in world.sent if target == "n4" and isinstance(m, PreVote | RequestVote)]
    world.run(3)
    assert not [m for source, _, m in world.sent if source == "n4" and isinstance(m, PreVote | RequestVote)]


def test_a_learner_that_is_behind_is_not_promoted() -> None:
    world = SmallCluster(3, spares=1)
    for _ in range(5):
        world.put_now()
    world.filter = lambda source, target, message: not (target == "n4" and isinstance(message, Append))
    add(world, "n4")
    world.start("n4")
    world.run(3)
    assert world.leader().machine.membership.learner == "n4"
    world.filter = lambda source, target, message: True
    world.run_until(lambda: settled(world, "n1 n2 n3 n4"))


def test_a_node_that_never_comes_disturbs_nobody_and_can_be_given_up() -> None:
    world = SmallCluster(3, spares=2)
    add(world, "n4")
    assert add(world, "n4") == NodeExists()
    assert add(world, "n5") == ChangeInProgress()
    assert remove(world, "n1") == ChangeInProgress()
    world.put_now()
    assert remove(world, "n4") == Accepted()
    joined(world, "n5")
    assert world.leader().machine.server_ids["n5"] == 5


def test_a_change_of_leader_does_not_stop_a_node_from_joining() -> None:
    world = SmallCluster(3, spares=1)
    add(world, "n4")
    world.kill(world.leader().name)
    world.start("n4")
    world.leader()
    world.run_until(lambda: "n4" in voters(world["n4"]) and world["n4"].up.journal.voter)


def test_a_removed_follower_knows_it_and_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    world = SmallCluster(3)
    gone = world.followers()[0].name
    term = world.leader().up.replica.term
    with caplog.at_level(logging.WARNING):
        assert remove(world, gone) == Accepted()
        world.run(6)
    assert "is no longer a member of the cluster" in caplog.text
    assert gone not in voters(world.leader())
    assert gone not in world.leader().up.peers
    assert world.leader().up.replica.term == term
    world.put_now()
    assert not any(node.name == gone and node.serving_log[-1:] == [True] for node in world)


def test_a_removed_follower_that_did_not_hear_of_it_disturbs_nobody() -> None:
    world = SmallCluster(4)
    gone = world.followers()[0].name
    rest = " ".join(name for name in world.nodes if name != gone)
    world.cut(gone, rest)
    term = world.leader().up.replica.term
    remove(world, gone)
    world.run(5)
    world.heal()
    world.run(5)
    assert world.leader().up.replica.term == term
    world.put_now()
    assert world[gone].up.replica.term <= term


def test_a_leader_that_is_removed_hands_over() -> None:
    world = SmallCluster(3)
    world.put_now(b"before")
    world.run_until(world.settled)
    gone = world.leader()
    assert remove(world, gone.name) == Accepted()
    assert not gone.up.leadership.serving
    world.run_until(lambda: world.serving() not in (None, gone), 1)
    world.put_now(b"after")
    world.run(5)
    assert not gone.up.replica.is_leader
    assert sorted(world.leader().machine.server_ids) == sorted(set(world.nodes) - {gone.name})
    world.kill(gone.name)
    world.put_now(b"without it")


def test_a_removed_leader_that_nobody_relieves_decides_nothing_more() -> None:
    world = SmallCluster(3)
    gone = world.leader()
    world.filter = lambda source, target, message: not isinstance(message, TimeoutNow)
    outcome = ask(world, ChangeMember(gone.name, MemberChange.REMOVE, gone.machine.membership.configuration))
    world.run(0.5)
    assert outcome.reply == Accepted()
    assert gone.up.replica.is_leader
    assert not gone.up.leadership.leading()
    assert voters(gone) == ["n1", "n2", "n3"]
    world.filter = lambda source, target, message: True
    world.run_until(lambda: world.serving() not in (None, gone))
    world.run(4)
    assert gone.name not in world.leader().up.peers


def test_two_removals_at_once_are_one() -> None:
    world = SmallCluster(5)
    leader = world.leader()
    configuration = leader.machine.membership.configuration
    others = [node.name for node in world.followers()]
    first = ask(world, ChangeMember(others[0], MemberChange.REMOVE, configuration))
    second = ask(world, ChangeMember(others[1], MemberChange.REMOVE, configuration))
    world.run_until(lambda: second.state != "open")
    assert (first.reply, second.reply) == (Accepted(), ChangeInProgress())


def test_what_cannot_be_removed() -> None:
    world = SmallCluster(1)
    assert remove(world, "n9") == UnknownNode()
    assert remove(world, "n1") == LastNode()
    world.put_now()


def test_a_cluster_shrinks_to_one_node_and_grows_again() -> None:
    world = SmallCluster(3, spares=2)
    world.put_now(b"precious")
    while len(voters(world.leader())) > 1:
        gone = world.followers()[0].name
        remove(world, gone)
        world.run(4)
        world.kill(gone)
    alone = world.leader().name
    world.put_now(b"alone")
    joined(world, "n4")
    joined(world, "n5")
    world.kill(alone)
    world.put_now(b"without the first")
    assert world.bodies("n4")[:2] == [b"precious", b"alone"]


def test_the_membership_survives_a_restart_of_everything_whatever_the_files_say() -> None:
    world = SmallCluster(3, spares=1)
    joined(world, "n4")
    gone = next(node.name for node in world.followers() if node.name != "n4")
    remove(world, gone)
    world.put_now(b"kept")
    rest = [name for name in world.nodes if name != gone]
    world.run_until(lambda: settled(world, " ".join(rest)))
    for name in world.nodes:
        world.kill(name)
    for name in rest:
        world.start(name)
    world.leader()
    assert voters(world.leader()) == rest
    world.start(gone)
    world.run(3)
    assert world.leader().name != gone
    assert gone not in world.leader().up.peers
    world.put_now(b"more")


@pytest.mark.parametrize("wiped", [False, True], ids=["with its disk", "with an empty disk"])
def test_a_removed_node_comes_back(wiped: bool) -> None:
    world = SmallCluster(3)
    gone = world.followers()[0].name
    remove(world, gone)
    world.run(4)
    world.kill(gone)
    if wiped:
        world.wipe(gone)
    for k in range(5):
        world.put_now(b"%d" % k)
    world.start(gone)
    world.run(1)
    assert isinstance(add(world, gone), Joined)
    world.run_until(lambda: settled(world, "n1 n2 n3") and world[gone].up.journal.voter)
    assert len(world.states()) == 1


def test_a_change_that_was_not_committed_is_forgotten() -> None:
    world = SmallCluster(3)
    world.put_now()
    old = world.leader()
    kept = world.followers()[0].name
    world.filter = lambda source, target, message: source != old.name or not isinstance(message, Append)
    outcome = ask(world, ChangeMember(kept, MemberChange.REMOVE, old.machine.membership.configuration))
    world.turn(old.name)
    world.filter = lambda source, target, message: True
    world.cut(old.name, " ".join(name for name in world.nodes if name != old.name))
    world.run_until(lambda: world.serving() not in (None, old))
    world.put_now(b"x")
    world.heal()
    world.run_until(world.settled)
    assert outcome.state in ("refused", "unknown")
    assert voters(world.leader()) == ["n1", "n2", "n3"]


def test_who_has_a_later_change_in_its_log_has_applied_the_one_before() -> None:
    """The reason why it is safe that a change takes effect only when it is applied (membership.py)."""
    world = SmallCluster(5)
    seen: list[bool] = []

    def watch(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Append) and any(b"n9" in entry[0] for entry in message.entries):
            seen.append(message.commit >= changed)
        return True
    others = [node.name for node in world.followers()]
    remove(world, others[0])
    changed = world.leader().machine.index
    world.filter = watch
    done(world, ChangeMember("n9", MemberChange.JOIN, peer="h:1", client="h:2"))
    assert seen
    assert all(seen)


def asleep(world: SmallCluster) -> str:
    """Kill a founder that may vote; returns its name."""
    world.run(1)
    away = world.followers()[0].name
    world.kill(away)
    return away


def test_a_member_that_slept_while_all_others_were_replaced_is_brought_up_to_date() -> None:
    world = SmallCluster(3, spares=2)
    world.put_now(b"before")
    away = asleep(world)
    joined(world, "n4")
    joined(world, "n5")
    for gone in sorted({"n1", "n2", "n3"} - {away}):
        remove(world, gone)
        world.run(4)
        world.kill(gone)
    world.start(away)
    world.run_until(lambda: settled(world, f"{away} n4 n5"))


def test_a_member_that_slept_helps_to_elect_whom_it_does_not_know() -> None:
    world = SmallCluster(3, spares=1)
    away = asleep(world)
    joined(world, "n4")
    leader = world.leader()
    (other,) = {"n1", "n2", "n3"} - {away, leader.name}
    world.filter = lambda source, target, message: target != other or not isinstance(message, Append)
    leader.propose(Put("q", 0, b"on n4 only"))
    world.run(0.1)
    world.kill(leader.name)
    world.filter = lambda source, target, message: True
    world.start(away)
    assert world.leader().name == "n4"
    world.start(leader.name)
    world.run_until(lambda: settled(world, "n1 n2 n3 n4"))


def test_a_removed_node_that_comes_back_is_found_by_a_leader_it_does_not_know() -> None:
    world = SmallCluster(3, spares=2)
    away = asleep(world)
    remove(world, away)
    joined(world, "n4")
    joined(world, "n5")
    world.leader().up.leadership.handover.begin("n5")
    world.run_until(lambda: world.serving() is world["n5"])
    world.start(away)
    world.run(4)
    assert not [pair for pair in world.links if away in pair]
    assert isinstance(add(world, away), Joined)
    world.run_until(lambda: settled(world, "n1 n2 n3 n4 n5"))


def test_a_removed_node_that_does_not_know_it_is_nobodys_peer() -> None:
    world = SmallCluster(4)
    away = asleep(world)
    remove(world, away)
    world.run(4)
    world.start(away)
    world.run(2)
    assert not [pair for pair in world.links if away in pair]
