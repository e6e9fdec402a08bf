"""A node that forgot its promises with its disk does no harm: when it is admitted, and what it may do then."""

from __future__ import annotations

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.wire.messages import Admit, RequestVote, TimeoutNow, Vote
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode


def wiped_follower(world: SmallCluster) -> SmallNode:
    """Return a follower that has lost its disk, and is not started again yet."""
    world.put_now()
    world.run_until(world.settled)
    wiped = world.followers()[0]
    world.kill(wiped.name)
    world.wipe(wiped.name)
    return wiped


def votes(world: SmallCluster, voter: SmallNode, term: int) -> list[str]:
    """Return the candidate for which this node has voted in a term."""
    return [
        target for source, target, message in world.sent
        if source == voter.name and isinstance(message, Vote) and message.term == term
    ]


@pytest.mark.parametrize("when", ["at once", "after a restart"])
def test_an_admitted_node_does_not_vote_in_the_term_of_its_admission(when: str) -> None:
    """It may have voted for another candidate of this term before it lost its disk."""
    world = SmallCluster(3)
    wiped = wiped_follower(world)
    leader = world.leader()
    term = leader.up.replica.term
    world.start(wiped.name)
    world.run_until(lambda: wiped.up.journal.voter, 5)
    world.run_until(world.settled)
    candidate = next(node for node in world if node not in (wiped, leader))
    if when != "at once":
        world.kill(wiped.name)
        world.start(wiped.name)
        world.run(1)                            # time to ask the others
        assert wiped.up.transport.right.held
    assert (world.leader(), leader.up.replica.term) == (leader, term)
    last = candidate.up.journal
    world.sent.clear()
    for asked in (term, term + 1):  # asked as if the leader had handed over, so nothing else keeps it from voting
        world.deliver(candidate.name, wiped.name, RequestVote(asked, last.last_index, last.last_term, True))
        world.run(0.05)
    assert votes(world, wiped, term) == []
    assert votes(world, wiped, term + 1) == [candidate.name]


def test_a_leader_that_has_offered_leadership_admits_nobody_in_that_term() -> None:
    """Votes for the node that takes over need no PreVote, so a vote that was forgotten could elect a second leader."""
    world = SmallCluster(3)
    wiped = wiped_follower(world)
    leader = world.leader()
    world.filter = lambda source, target, message: not isinstance(message, TimeoutNow)
    leader.up.leadership.online = False
    world.run_until(lambda: any(isinstance(message, TimeoutNow) for _, _, message in world.sent), 2)
    term = leader.up.replica.term
    world.start(wiped.name)
    world.run(3)
    assert leader.up.replica.term == term
    assert not [message for _, _, message in world.sent if isinstance(message, Admit)]
    leader.up.leadership.online = True
    world.run_until(lambda: wiped.up.journal.voter, 10)
    admitted = [message.term for _, _, message in world.sent if isinstance(message, Admit)]
    assert admitted
    assert min(admitted) > term


def test_a_voter_that_was_started_again_gives_no_vote_before_it_has_asked_or_waited() -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    leader, (started, candidate) = world.leader(), world.followers()
    world.kill(started.name)
    world.cut(started.name, leader.name)
    world.start(started.name)
    for wait_s, term in ((0.1, leader.up.replica.term + 1), (limits.REENTRY_S, leader.up.replica.term + 2)):
        world.run(wait_s)
        last = candidate.up.journal
        world.deliver(candidate.name, started.name, RequestVote(term, last.last_index, last.last_term, True))
        world.run(0.01)
        assert votes(world, started, term) == ([candidate.name] if wait_s == limits.REENTRY_S else [])


def test_a_new_cluster_asks_nobody_and_says_nothing_of_it(caplog: pytest.LogCaptureFixture) -> None:
    world = SmallCluster(3)
    world.put_now()
    world.run(limits.REENTRY_S + 1)
    assert "voting again" not in caplog.text
