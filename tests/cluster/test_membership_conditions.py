"""The conditions for a learner to become a voter, and the places of members: each of leader/membership.py alone."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster.leader.membership import Members, Promotion
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.settings import Member
from sockpqd.core import Address, ChangeMember, MemberChange, Membership

TERM = 7
ROUND_S = 0.5                   # a binary fraction: exactly then


class Leader:
    """A leader with a log up to 20, which the learner `new` has."""

    def __init__(self) -> None:
        self.proposed: list[Any] = []
        self.new = Peer(PeerNode("new"))
        self.new.up, self.new.term, self.new.match = True, TERM, 20
        self.new.info = cast(Any, SimpleNamespace(voter=True))
        self.journal = SimpleNamespace(last_index=20)
        self.membership = SimpleNamespace(learner="new", configuration=3)
        self.context = SimpleNamespace(
            now=64.0, peers={"new": self.new}, replica=SimpleNamespace(term=TERM), journal=self.journal)
        self.promotion = Promotion(
            cast(Any, self.context), cast(Any, SimpleNamespace(membership=self.membership)),
            lambda operation, pending: self.proposed.append(operation), ROUND_S)

    def tick(self, *, leading: bool = True) -> bool:
        """Return whether a promotion was proposed by now."""
        self.promotion.tick(leading)
        return bool(self.proposed)


@pytest.fixture
def leader() -> Leader:
    return Leader()


class TestPromotion:
    def test_one_that_has_all_is_promoted_once(self, leader: Leader) -> None:
        assert not leader.tick()
        assert leader.tick()
        leader.tick()
        leader.tick()
        assert leader.proposed == [ChangeMember("new", MemberChange.PROMOTE, 3)]

    @pytest.mark.parametrize("outcome", ["applied", "refused", "unknown"])
    def test_once_more_after_an_outcome(self, outcome: str, leader: Leader) -> None:
        leader.tick()
        leader.tick()
        getattr(leader.promotion, outcome)(*[cast(Any, None)] * (outcome == "applied"))
        leader.tick()
        leader.tick()
        assert len(leader.proposed) == 2

    @pytest.mark.parametrize("what", ["behind", "unheard", "no right"])
    def test_not_before_it_has_all_and_may_vote(self, what: str, leader: Leader) -> None:
        if what == "behind":
            leader.new.match = 19
        else:
            leader.new.info = None if what == "unheard" else cast(Any, SimpleNamespace(voter=False))
        leader.tick()
        assert not leader.tick()

    @pytest.mark.parametrize("what", ["no leader", "down", "choked", "another term", "nobody", "unknown"])
    def test_a_round_that_was_interrupted_begins_once_more(self, what: str, leader: Leader) -> None:
        leader.tick()
        leader.new.up, leader.new.choked = what != "down", what == "choked"
        leader.new.term -= what == "another term"
        leader.membership.learner = {"nobody": None, "unknown": "other"}.get(what, "new")
        assert not leader.tick(leading=what != "no leader")
        leader.new.up, leader.new.choked, leader.new.term, leader.membership.learner = True, False, TERM, "new"
        leader.journal.last_index = 21          # of the next round
        assert not leader.tick()
        assert not leader.tick()
        leader.new.match = 21
        assert leader.tick()

    def test_a_slow_round_is_followed_by_another(self, leader: Leader) -> None:
        leader.tick()
        leader.context.now += ROUND_S + 0.125
        leader.journal.last_index = 21
        assert not leader.tick()
        assert not leader.tick()
        leader.new.match = 21
        leader.context.now += ROUND_S
        assert leader.tick()


class TestMembers:
    def members(self, name: str = "a") -> tuple[Members, Any]:
        configured = tuple(Member(name, f"client-{name}:1", f"peer-{name}:1") for name in "ab")
        machine = SimpleNamespace(membership=Membership())
        return Members(cast(Any, SimpleNamespace(name=name, members=configured)), cast(Any, machine)), machine

    def test_the_file_says_where_members_are_and_then_the_log(self) -> None:
        members, machine = self.members()
        machine.membership = Membership(addresses={
            "b": Address("b", "moved:1", "moved:2"), "c": Address("c", "log:1", "log:2"),
            "d": Address("d", "log:3", "")})
        assert [members.peer_address(name) for name in "bcdx"] == ["peer-b:1", "log:1", "log:3", ""]
        assert [members.client_address(name) for name in "bcdx"] == ["client-b:1", "log:2", ":0", ":0"]

    def test_a_member_says_itself_where_clients_find_it(self) -> None:
        members, _ = self.members()
        members.hear("b", "new:1")
        assert (members.client_address("b"), members.client_address("a")) == ("new:1", "client-a:1")
        assert members.peer_address("b") == "peer-b:1"
        members.hear("b", "")
        members.hear("a", "")
        assert members.client_address("b") == "client-b:1"

    @pytest.mark.parametrize(("before", "after", "warned"), [
        ("ab", "b", True), ("ab", "ab", False), ("b", "b", False), ("b", "ab", False)])
    def test_a_node_that_was_removed_says_so(
        self, before: str, after: str, warned: bool, caplog: pytest.LogCaptureFixture,
    ) -> None:
        members, machine = self.members()
        for names in (before, after):
            caplog.clear()
            machine.membership = Membership(addresses={name: Address(name, "p:1", "c:1") for name in names})
            assert members.changed
            members.follow()
            assert not members.changed
        assert ("no longer a member" in caplog.text) is warned
        assert members.belongs is ("a" in after)
