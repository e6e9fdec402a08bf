"""Campaigns of nodes, and the PreVotes and votes that they grant."""

from __future__ import annotations

import random
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.elections import FOUNDING_STEPS, Elections
from sockpqd.cluster.wire.messages import PreVote, PreVoteAnswer, RequestVote, TimeoutNow, Vote

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
        self.elected: list[int] = []
        replica = SimpleNamespace(
            term=TERM, leader_node=self.leader.node if leader else None, behind=False)
        self.context: Any = SimpleNamespace(
            name=name, now=100.0, replica=replica, leads=lambda: False, peers=self.peers,
            journal=SimpleNamespace(last_index=9, last_term=TERM, empty=False),
            send=lambda peer, message: self.sent.append(message),
            deliver=lambda node, message: self.delivered.append(message),
        )
        self.quorum: Any = SimpleNamespace(voters=voters, majority=2, member=True, learns=False,
                                           peers=list(self.peers.values()), elected=self.elected.append)
        self.right: Any = SimpleNamespace(held=True, allows=lambda term, index: True, no_vote_up_to=-1,
                                          may_vote=lambda term, last_term, last_index: True)
        self.elections = Elections(self.context, self.quorum, self.right, random.Random(seed), MIN_S, MAX_S)

    def asks_after(self) -> float:
        """Return the seconds until it asks for PreVotes."""
        began = self.context.now
        while not self.sent and self.context.now < began + 3 * MAX_S:
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


Change = Callable[[Follower], object]


def _replica(**changed: object) -> Change:
    return lambda follower: vars(follower.context.replica).update(changed)


def _right(**changed: object) -> Change:
    return lambda follower: vars(follower.right).update(changed)


def _leads(follower: Follower) -> None:
    follower.context.leads = lambda: True


def _denies_all(term: int, index: int) -> bool:
    return False


# ---- who asks


@pytest.mark.parametrize("change", [
    _right(held=False), _right(allows=_denies_all),
    lambda follower: setattr(follower.elections, "may_campaign", False),
    lambda follower: setattr(follower.quorum, "learns", True), _replica(behind=True),
], ids=["without the right", "knowing of a longer log", "offline", "a learner", "behind"])
def test_who_may_not_lead_asks_nobody(change: Change) -> None:
    follower = Follower("n2")
    change(follower)
    assert follower.asks_after() > 2 * MAX_S
    assert not follower.sent


def test_who_is_behind_takes_over_when_it_has_applied_everything() -> None:
    follower = Follower("n2")
    _replica(behind=True)(follower)
    follower.elections.timeout_now(cast(Any, follower.leader), TimeoutNow(TERM))
    follower.elections.tick()
    assert not follower.delivered
    _replica(behind=False)(follower)
    follower.elections.tick()
    assert len(follower.delivered) == 1


def test_who_is_behind_counts_its_votes_when_it_has_applied_everything() -> None:
    follower = Follower("n2")
    _replica(behind=True)(follower)
    follower.elections.library_requests_votes(TERM, 9, TERM)
    follower.elections.vote_received(cast(Any, follower.peers["n3"]), Vote(TERM))
    assert not follower.elected
    _replica(behind=False)(follower)
    follower.elections.tick()
    assert follower.elected == [TERM]


def test_nobody_asks_before_the_end_of_a_promise() -> None:
    follower = Follower("n2")
    follower.elections.leader_heard(2000)
    assert 2.0 <= follower.asks_after() <= 2.0 + MAX_S


# ---- who is granted a PreVote


def _granted(change: Change, question: PreVote, heard_ms: int | None = None) -> bool:
    follower = Follower("n2")
    if heard_ms is not None:
        follower.elections.leader_heard(heard_ms)
    change(follower)
    follower.elections.pre_vote_requested(cast(Any, follower.peers["n3"]), question)
    (answer,) = follower.sent
    assert isinstance(answer, PreVoteAnswer)
    assert (answer.round, answer.term) == (question.round, follower.context.replica.term)
    return answer.granted


QUESTION = PreVote(3, TERM, 9, TERM)


def test_a_pre_vote_is_granted_to_a_log_as_long() -> None:
    for last_index, last_term, granted in [
        (9, TERM, True), (1, TERM + 1, True), (8, TERM, False), (99, TERM - 1, False),
    ]:
        assert _granted(lambda _: None, PreVote(3, TERM, last_index, last_term)) is granted


@pytest.mark.parametrize("change", [
    _right(held=False), _right(allows=_denies_all), _right(no_vote_up_to=TERM + 1), _replica(term=TERM + 1), _leads,
    lambda follower: setattr(follower.peers["n3"], "leaving", True),
], ids=["no right", "a longer log is known", "no vote in this term", "a later term", "leads", "the candidate leaves"])
def test_a_pre_vote_is_not_granted(change: Change) -> None:
    assert not _granted(change, QUESTION)


def test_no_pre_vote_is_granted_while_the_leader_is_alive_or_the_promise_runs() -> None:
    def later(seconds: float, *, lost: bool) -> Change:
        def change(follower: Follower) -> None:
            if lost:
                follower.elections.leader_lost()
            follower.context.now += seconds
        return change

    assert not _granted(later(MIN_S - 0.01, lost=False), QUESTION, heard_ms=0)
    assert _granted(later(MIN_S + 0.01, lost=False), QUESTION, heard_ms=0)
    assert not _granted(later(0.24, lost=True), QUESTION, heard_ms=250)
    assert _granted(later(0.25, lost=True), QUESTION, heard_ms=250)


# ---- which answers count


@pytest.mark.parametrize(("answer", "change"), [
    (PreVoteAnswer(1, TERM, True), _leads), (PreVoteAnswer(1, TERM, True), _replica(term=TERM + 1)),
    (PreVoteAnswer(2, TERM, True), lambda _: None), (PreVoteAnswer(1, TERM, False), lambda _: None),
], ids=["it leads", "a later term", "of another round", "not granted"])
def test_a_pre_vote_does_not_count(answer: PreVoteAnswer, change: Change) -> None:
    follower = Follower("n2")
    follower.elections.leader_lost()
    follower.asks_after()
    change(follower)
    follower.elections.pre_vote_answered(cast(Any, follower.peers["n3"]), answer)
    follower.context.leads = lambda: False
    follower.elections.tick()
    assert not follower.delivered


def test_a_round_that_was_won_in_an_earlier_term_starts_no_election() -> None:
    follower = Follower("n2")
    follower.elections.leader_lost()
    follower.asks_after()
    follower.elections.pre_vote_answered(cast(Any, follower.peers["n3"]), PreVoteAnswer(1, TERM, True))
    follower.context.replica.term = TERM + 1
    follower.elections.tick()
    assert not follower.delivered


def test_votes_are_asked_of_those_whose_pre_votes_were_counted() -> None:
    """A later grant may be the answer to a question that was late, when the voter had heard its leader again."""
    follower = Follower("n2")
    follower.asks_after()
    follower.elections.pre_vote_answered(cast(Any, follower.peers["n3"]), PreVoteAnswer(1, TERM, True))
    follower.elections.pre_vote_answered(cast(Any, follower.peers["n1"]), PreVoteAnswer(1, TERM, True))
    follower.elections.tick()
    asked: list[str] = []
    follower.context.send = lambda peer, message: asked.append(peer.name)
    follower.elections.library_requests_votes(TERM + 1, 9, TERM)
    assert asked == ["n3"]


def test_all_are_asked_where_the_leader_hands_over() -> None:
    follower = Follower("n2")
    asked: list[str] = []
    follower.context.send = lambda peer, message: asked.append(peer.name)
    follower.elections._handover_term = TERM + 1
    follower.elections.library_requests_votes(TERM + 1, 9, TERM)
    assert sorted(asked) == ["n1", "n3"]


def test_votes_count_in_the_term_of_the_candidacy_only() -> None:
    for term, elected in [(TERM + 1, [TERM + 1]), (TERM + 2, [])]:
        follower = Follower("n2")
        follower.context.replica.term = TERM + 1
        follower.elections.library_requests_votes(TERM + 1, 9, TERM)
        follower.context.replica.term = term
        follower.elections.vote_received(cast(Any, follower.peers["n3"]), Vote(TERM + 1))
        assert follower.elected == elected


# ---- who is voted for


def test_a_vote_needs_a_pre_vote_or_a_handover() -> None:
    for asked, handover, leaving, votes in [
        (True, False, False, True), (False, True, False, True), (False, False, False, False),
        (True, False, True, False), (False, True, True, False),
    ]:
        follower = Follower("n2")
        candidate = cast(Any, follower.peers["n3"])
        if asked:
            follower.elections.pre_vote_requested(candidate, QUESTION)
        candidate.leaving = leaving
        follower.elections.vote_requested(candidate, RequestVote(TERM + 1, 9, TERM, handover))
        assert bool(follower.delivered) is votes


# ---- who takes over


@pytest.mark.parametrize("change", [
    _replica(term=TERM + 1), _replica(leader_node=None), _right(held=False),
    lambda follower: setattr(follower.elections, "may_campaign", False),
    lambda follower: setattr(follower.quorum, "member", False),
], ids=["of an earlier term", "not from the leader", "without the right", "offline", "no voter"])
def test_who_is_asked_to_take_over_does_not(change: Change) -> None:
    follower = Follower("n2")
    change(follower)
    follower.elections.timeout_now(follower.leader, TimeoutNow(TERM))
    follower.elections.tick()
    assert not follower.delivered
