"""While a leader may serve, no other node does: the start of its lease and of its followers' patience."""

from __future__ import annotations

import pytest

from sockpqd.cluster.wire.messages import Ack, Message, PreVote, PreVoteAnswer
from tests.cluster.helpers.small_cluster import SmallCluster

LEASE_MS = 550
ELECTION_MS = 600


@pytest.mark.parametrize("seed", range(5))
def test_an_answer_that_arrives_late_prolongs_the_lease_from_when_it_was_asked_for(seed: int) -> None:
    world = SmallCluster(3, seed, lease_ms=LEASE_MS, election_min_ms=ELECTION_MS, election_max_ms=ELECTION_MS + 50)
    old = world.leader()
    world.put_now()
    late: list[tuple[str, Message]] = []

    def hold(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Ack) and target == old.name:
            late.append((source, message))
            return False
        return True
    world.filter = hold
    world.run(0.1)
    # From here on the old leader is isolated, and the followers wait as long as they have promised.
    world.filter = lambda source, target, message: old.name not in (source, target)
    world.run(0.4)
    assert late
    for source, message in late:
        world.deliver(source, old.name, message)
    world.run_until(lambda: world.serving() not in (None, old), 2)      # fails when two serve
    world.run(1)
    assert not old.up.leadership.serving


def test_a_node_that_does_not_hear_the_leader_is_not_elected_by_those_who_do() -> None:
    world = SmallCluster(3)
    leader = world.leader()
    world.put_now()
    world.run_until(world.settled)
    term, deaf = leader.up.replica.term, world.followers()[0]
    world.filter = lambda source, target, message: (source, target) != (leader.name, deaf.name)
    world.run(10)
    assert world.leader() is leader
    assert leader.up.replica.term == term
    world.filter = lambda source, target, message: True
    world.put_now()
    world.run_until(world.settled)


def test_a_node_whose_promise_is_over_waits_as_long_as_it_waits_for_a_leader() -> None:
    world = SmallCluster(3, election_min_ms=ELECTION_MS, election_max_ms=10_000)   # the nodes themselves ask later
    leader = world.leader()
    world.put_now()
    world.run_until(world.settled)
    asked, candidate = world.followers()
    last = candidate.up.journal
    question = PreVote(1000, leader.up.replica.term, last.last_index, last.last_term)
    world.filter = lambda source, target, message: source != leader.name
    world.sent.clear()
    for granted in (False, True):
        world.run(ELECTION_MS / 1000 * 0.6)
        world.deliver(candidate.name, asked.name, question)
        world.run(0.01)
        answers = [message.granted for source, _, message in world.sent
                   if source == asked.name and isinstance(message, PreVoteAnswer) and message.round == 1000]
        assert answers == [False, True][:1 + granted]


def test_nor_is_one_whose_connection_to_the_leader_is_closed() -> None:
    world = SmallCluster(5)
    leader = world.leader()
    world.put_now()
    world.run_until(world.settled)
    term, lonely = leader.up.replica.term, world.followers()[0]
    world.cut(leader.name, lonely.name)
    world.run(10)
    assert world.leader() is leader
    assert leader.up.replica.term == term
