"""When a node campaigns: after it lost its leader, after a round of PreVotes, and when it was asked to take over."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cluster import limits
from cluster.raft.elections import FOUNDING_STEPS, Elections
from cluster.wire.messages import PreVoteAnswer, TimeoutNow

TERM, MIN_S, MAX_S = 7, 0.6, 1.2
STEP_S = MIN_S * limits.EARLY_ELECTION_STEP


class Follower:
    """The elections of the node `name` of three, whose leader is `leader`, and what was given to the library."""

    def __init__(self, name: str, leader: str | None = "n1", seed: int = 0) -> None:
        voters = {"n1", "n2", "n3"}
        self.peers = {other: SimpleNamespace(name=other, up=True, node=SimpleNamespace(id=other), leaving=False)
                      for other in voters - {name}}
        self.delivered: list[dict[str, Any]] = []
        self.sent: list[Any] = []
        self.leader: Any = self.peers[leader] if leader else None
        replica = SimpleNamespace(term=TERM, leader_node=self.leader.node if leader else None)
        self.context: Any = SimpleNamespace(
            name=name, now=100.0, replica=replica, leads=lambda: False, peers=self.peers,
            journal=SimpleNamespace(last_index=9, last_term=TERM, empty=False),
            send=lambda peer, message: self.sent.append(message),
            deliver=lambda node, message: self.delivered.append(message),
        )
        quorum = SimpleNamespace(voters=voters, majority=2, member=True, learns=False, peers=list(self.peers.values()))
        right = SimpleNamespace(held=True, allows=lambda term, index: True, no_vote_up_to=-1)
        self.elections = Elections(self.context, cast(Any, quorum), cast(Any, right), random.Random(seed), MIN_S, MAX_S)

    def asks_after(self) -> float:
        """Seconds until it asks for PreVotes."""
        began = self.context.now
        while not self.sent and self.context.now < began + MAX_S:
            self.context.now += 0.001
            self.elections.tick()
        return float(self.context.now - began)


@pytest.mark.parametrize("seed", range(5))
def test_after_the_end_of_the_leader_each_has_a_turn_by_its_name(seed: int) -> None:
    for place, name in enumerate(("n2", "n3")):
        follower = Follower(name, seed=seed)
        follower.elections.leader_lost()
        assert place * STEP_S < follower.asks_after() < (place + 0.5) * STEP_S


def test_where_nobody_led_turns_are_by_chance() -> None:
    asked = []
    for seed in range(20):
        follower = Follower("n2", leader=None, seed=seed)
        follower.elections.leader_lost()
        asked.append(follower.asks_after())
    assert max(asked) - min(asked) > FOUNDING_STEPS / 2 * STEP_S


def test_one_that_is_asked_to_take_over_does_so_although_it_hears_the_leader() -> None:
    follower = Follower("n2")
    follower.elections.leader_heard(100)
    follower.elections.timeout_now(follower.leader, TimeoutNow(TERM))
    follower.elections.leader_heard(100)
    follower.elections.tick()
    assert follower.delivered == [{"type": "timeout_now", "term": TERM}]


def test_a_round_that_was_won_before_the_leader_was_heard_again_counts_no_more() -> None:
    for heard in (False, True):
        follower = Follower("n2")
        follower.elections.leader_lost()
        assert follower.asks_after() < MAX_S
        follower.elections.pre_vote_answered(cast(Any, follower.peers["n3"]), PreVoteAnswer(1, TERM, True))
        if heard:
            follower.elections.leader_heard(100)
        follower.elections.tick()
        assert bool(follower.delivered) is not heard


def test_one_that_led_asks_nobody_meanwhile_and_waits_as_long_as_others_afterwards() -> None:
    follower = Follower("n2", leader=None)
    follower.elections.tick()
    follower.context.leads = lambda: True
    follower.elections.tick()
    follower.context.now += 10 * MAX_S
    follower.elections.tick()
    assert not follower.sent
    follower.context.leads = lambda: False
    follower.elections.tick()
    assert not follower.sent
    assert MIN_S <= follower.asks_after() <= MAX_S
