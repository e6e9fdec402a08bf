"""A voter that was started again asks the others what it may have forgotten, before it votes or counts."""

from __future__ import annotations

import copy
import logging

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.wire.messages import Ack, Admit, Append, Message, PreVote, PreVoteAnswer
from sockpqd.core import Put
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.cluster.helpers.small_cluster import DELAY_S, SmallCluster, SmallNode


def older_copy(node: SmallNode) -> MemoryDisk:
    """Return what is on the disk of a running node at this moment."""
    disk = copy.deepcopy(node.disk)
    disk.crash()
    return disk


def put_back(world: SmallCluster, node: SmallNode, disk: MemoryDisk) -> None:
    """Stop a node and start it with an older copy of its data directory."""
    if node.driver is not None:
        world.kill(node.name)
    node.disk = disk
    world.start(node.name)


def only_on_leader_and(world: SmallCluster, follower: SmallNode) -> bytes:
    """Put a job that only the leader and this follower have; the other one was cut off before."""
    other = next(node for node in world.followers() if node is not follower)
    world.cut(other.name, f"{world.leader().name} {follower.name}")
    world.put_now(b"precious")
    return b"precious"


def forgets_what_others_acknowledged(world: SmallCluster) -> None:
    """No node knows from another one's commit index or answers what was on its disk (Hello.acknowledged)."""
    for node in world:
        if node.driver is not None:
            node.up.journal.acknowledged = lambda name: 0       # type: ignore[method-assign]


def test_an_older_copy_loses_nothing_while_who_knows_better_runs() -> None:
    """The leader is deposed at the same moment; the two nodes without the entry are a majority."""
    world = SmallCluster(3)
    leader = world.leader()
    follower, other = world.followers()
    world.put_now(b"first")
    world.run(2)
    copied = older_copy(follower)
    job = only_on_leader_and(world, follower)
    forgets_what_others_acknowledged(world)
    put_back(world, follower, copied)
    leader.up.leadership.online = False
    leader.up.transport.elections.may_campaign = False
    world.heal()
    forgets_what_others_acknowledged(world)
    world.run(1)
    leader.up.leadership.online = True
    leader.up.transport.elections.may_campaign = True
    world.run(5)
    for node in (leader, follower, other):
        assert node.failure is None
        assert job in world.bodies(node.name), node.name


def test_who_comes_back_within_the_time_saves_what_only_it_has() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    follower = world.followers()[0]
    world.put_now(b"first")
    world.run(2)
    copied = older_copy(follower)
    job = only_on_leader_and(world, follower)
    world.kill(leader.name)
    put_back(world, follower, copied)
    world.heal()
    world.run(limits.REENTRY_S * 0.8)
    assert world.serving() is None, "two nodes without the entry wait for the third one"
    world.start(leader.name)
    world.run(5)
    assert job in world.bodies(world.leader().name)
    assert [node.failure for node in world] == [None] * 3


def test_two_of_three_serve_when_the_third_is_gone_for_good(caplog: pytest.LogCaptureFixture) -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    gone, again = world.leader(), world.followers()[0]
    world.kill(gone.name)
    world.kill(again.name)
    with caplog.at_level(logging.WARNING):
        world.start(again.name)
        began = world.now
        world.leader(limits.REENTRY_S + 2)
    assert world.now - began > limits.REENTRY_S
    assert f"although {gone.name} could not be asked" in caplog.text
    world.put_now()


def test_all_that_start_at_once_ask_each_other_and_lose_no_time() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    for node in world:
        world.kill(node.name)
    for node in world:
        world.start(node.name)
    world.leader(1.5)


def test_who_is_alone_asks_nobody() -> None:
    world = SmallCluster(1)
    world.put_now()
    world.kill("n1")
    world.start("n1")
    world.leader(0.1)


def test_a_leader_with_a_majority_admits_it_at_once_though_another_one_is_gone() -> None:
    world = SmallCluster(5)
    world.put_now()
    world.run_until(world.settled)
    gone, again = world.followers()[:2]
    world.kill(gone.name)
    world.kill(again.name)
    world.start(again.name)
    world.run(0.1)
    assert again.up.transport.right.held
    assert again.up.info().voter


def test_of_five_all_others_are_asked() -> None:
    """The candidate that it voted for need not be among three of them, and these need not have heard of it yet."""
    world = SmallCluster(5)
    world.put_now()
    world.run_until(world.settled)
    gone, again = world.followers()[:2]
    world.kill(gone.name)
    world.kill(again.name)
    world.filter = lambda source, target, message: not isinstance(message, Admit)
    world.start(again.name)
    world.run(limits.REENTRY_S - 0.1)
    assert not again.up.transport.right.held
    world.run(0.3)
    assert again.up.transport.right.held


def test_a_start_that_takes_long_is_no_time_in_which_it_was_greeted() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    again = world.followers()[0]
    world.kill(again.name)
    world.cut(again.name, " ".join(name for name in world.nodes if name != again.name))
    world.start(again.name)
    world.run(1)
    world.events.now += limits.REENTRY_S               # it stands still
    world.run(0.5)
    assert not again.up.transport.right.held
    world.run(limits.REENTRY_S)
    assert again.up.transport.right.held


def test_who_goes_on_unasked_does_so_in_another_term() -> None:
    """In the present one it may have voted for the node that it could not ask."""
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    gone, again = world.leader(), world.followers()[0]
    term = gone.up.replica.term
    world.kill(gone.name)
    world.kill(again.name)
    world.start(again.name)
    leader = world.leader(limits.REENTRY_S + 3)
    assert leader.up.replica.term > term + 1


def test_a_log_that_nobody_has_any_more_keeps_nobody_from_an_election() -> None:
    """The leader had an entry that no one acknowledged, and is gone for good after it greeted the started node."""
    world = SmallCluster(3)
    leader = world.leader()
    again, _ = world.followers()
    world.put_now()
    world.run_until(world.settled)
    world.kill(again.name)
    world.filter = lambda source, target, message: not (isinstance(message, Append) and source == leader.name)
    leader.propose(Put("q", 0, b"acknowledged by nobody"))
    world.turn(leader.name)
    world.start(again.name)
    world.run(0.02)
    assert again.up.transport.right.held
    assert not again.up.transport.right.allows(again.up.journal.last_term, again.up.journal.last_index)
    world.kill(leader.name)
    world.filter = lambda source, target, message: True
    world.leader(limits.REENTRY_S + 3)


def test_what_it_acknowledges_meanwhile_does_not_count() -> None:
    """Not even when it has the right again: it may have voted for a newer leader, and has learnt of it only then."""
    world = SmallCluster(3)
    leader = world.leader()
    again, other = world.followers()
    world.put_now()
    world.run_until(world.settled)
    world.kill(other.name)
    world.kill(again.name)
    world.start(again.name)
    outcome = leader.propose(Put("q", 0, b"x"))
    world.run(0.2)
    assert again.up.journal.last_index == leader.up.journal.last_index, "it has the entry,"
    assert outcome.state != "applied", "and does not count"
    peer = leader.up.peers[again.name]
    assert peer.match > 0
    world.filter = lambda source, target, message: not (isinstance(message, Append) and target == again.name)
    world.start(other.name)
    world.run_until(lambda: peer.info is not None and peer.info.voter, 1)
    assert peer.match == 0
    assert peer.acked_sent_at == float("-inf")
    world.filter = lambda source, target, message: True
    world.run(0.2)
    assert peer.match == leader.up.journal.last_index


def test_it_votes_in_no_term_in_which_it_may_have_voted() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    again, other = world.followers()
    world.put_now()
    world.run_until(world.settled)
    world.kill(again.name)
    world.start(again.name)
    world.run(2 * DELAY_S)
    right, journal = again.up.transport.right, leader.up.journal
    world.run(0.05)
    assert right.held
    term = leader.up.replica.term
    assert right.may_vote(term + 1, journal.last_term, journal.last_index)
    assert not right.may_vote(term, journal.last_term, journal.last_index), "it may have voted in this term"
    assert other.up.transport.right.may_vote(term + 1, 0, 0), "who was not started again knows what it promised"


def test_it_helps_no_node_with_a_shorter_log_to_an_election() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    follower, other = world.followers()
    world.put_now(b"first")
    world.run(2)
    copied = older_copy(follower)
    only_on_leader_and(world, follower)
    world.heal()
    world.filter = lambda source, target, message: False
    put_back(world, follower, copied)
    world.run(1)                                # it has been greeted, and promises nothing any more
    assert follower.up.transport.right.held
    answers: list[bool] = []

    def note(source: str, target: str, message: Message) -> bool:
        if isinstance(message, PreVoteAnswer) and source == follower.name:
            answers.append(message.granted)
        return False
    world.filter = note
    for node in (other, leader):
        term, journal = follower.up.replica.term, node.up.journal
        assert journal.last_index >= follower.up.journal.last_index
        world.deliver(node.name, follower.name, PreVote(99, term, journal.last_index, journal.last_term))
        world.run(2 * DELAY_S)
    assert answers == [False, True]
    right, journal, term = follower.up.transport.right, other.up.journal, follower.up.replica.term
    assert not right.may_vote(term + 1, journal.last_term, journal.last_index)
    assert right.may_vote(term + 1, leader.up.journal.last_term, leader.up.journal.last_index)


def test_it_acknowledges_nothing_in_a_term_before_theirs() -> None:
    """It may have voted for the one that was elected since; here it had not, and only its copy is older."""
    world = SmallCluster(3, sleeps=False)       # another one is elected
    old = world.leader()
    follower, other = world.followers()
    world.put_now()
    world.run(2)
    copied = older_copy(follower)
    world.cut(old.name, f"{follower.name} {other.name}")
    world.run_until(lambda: follower.up.leadership.serving or other.up.leadership.serving)
    new_term = other.up.replica.term
    assert new_term > old.up.replica.term
    world.cut(follower.name, other.name)
    put_back(world, follower, copied)
    assert follower.up.replica.term < new_term
    acks: list[Ack] = []

    def note(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Ack) and source == follower.name:
            acks.append(message)
        return True
    world.filter = note
    world.heal()
    world.run(0.02)
    forgotten = len(acks)
    world.run(3)
    assert all(ack.term >= new_term for ack in acks[forgotten:])
    assert follower.up.replica.term >= new_term


@pytest.mark.parametrize("member", [True, False])
def test_a_node_that_was_removed_deposes_nobody(*, member: bool) -> None:
    world = SmallCluster(5)
    world.put_now()
    asking, gone = world.followers()[:2]
    for node in (asking, gone):
        world.kill(node.name)
    world.filter = lambda source, target, message: not isinstance(message, Admit)       # as nobody admits it again
    world.start(asking.name)
    asking.up.transport.quorum.member = member          # False: as after the entry that removes it
    term = world.leader().up.replica.term
    world.run(limits.REENTRY_S + 2)
    assert (world.leader().up.replica.term == term) is not member
