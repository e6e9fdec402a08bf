"""A leader grants the right to vote to a node that was brought up to date, and the node accepts it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.raft.voter_admission import Admission
from sockpqd.cluster.wire.messages import Admit

TERM = 7
LAST = 20


def peer(name: str, *, voter: bool) -> Peer:
    found = Peer(PeerNode(name))
    found.up, found.term, found.match = True, TERM, LAST
    found.info = cast(Any, SimpleNamespace(voter=voter, empty=False))
    return found


class Leader:
    """One of five voters, of which `new` has no right to vote and two others have just answered."""

    def __init__(self) -> None:
        self.new = peer("new", voter=False)
        self.others = [peer(name, voter=True) for name in ("a", "b", "c")]
        self.admitted: list[tuple[str, int]] = []
        self.leading = True
        self.elections = SimpleNamespace(offered=False)
        peers = [self.new, *self.others]
        self.context = SimpleNamespace(
            now=10.0, journal=SimpleNamespace(last_index=LAST), replica=SimpleNamespace(term=TERM),
            peers={peer.name: peer for peer in peers}, leads=lambda: self.leading,
            send=lambda peer, message: self.admitted.append((peer.name, message.term)),
        )
        self.quorum = SimpleNamespace(peers=peers, member=True, majority=3)
        self.admission = Admission(*(cast(Any, one) for one in (self.context, self.quorum, None, self.elections)))
        self.admission.tick()               # notes where the log ends
        assert self.admitted == []
        for other in self.others[:2]:
            other.acked_sent_at = 10.5

    def admits(self) -> bool:
        self.admission.tick()
        assert self.admitted in ([], [("new", TERM)])
        return bool(self.admitted)


def test_one_that_has_the_log_is_admitted_while_a_majority_without_it_answers() -> None:
    assert Leader().admits()


@pytest.mark.parametrize("what", [
    "a follower now", "offered to another", "gone", "unheard", "votes already", "leaves", "behind"])
def test_it_is_not_admitted_otherwise(what: str) -> None:
    leader = Leader()
    leader.leading = what != "a follower now"
    leader.elections.offered = what == "offered to another"
    leader.new.up = what != "gone"
    leader.new.leaving = what == "leaves"
    if what == "unheard":
        leader.new.info = None
    elif what == "votes already":
        leader.new.info = leader.others[0].info
    elif what == "behind":
        leader.new.match = LAST - 1
    assert not leader.admits()


@pytest.mark.parametrize("what", ["unheard", "no voter", "another term", "not since then"])
def test_one_answer_too_few_is_no_majority(what: str) -> None:
    leader = Leader()
    one = leader.others[0]
    leader.new.acked_sent_at = 11.0         # its own answer does not count
    if what == "unheard":
        one.info = None
    elif what == "no voter":
        one.info = leader.new.info
    elif what == "another term":
        one.term = TERM - 1
    else:
        one.acked_sent_at = 10.0            # the moment at which it was found
    assert not leader.admits()


def test_a_leader_that_is_no_voter_does_not_count_itself() -> None:
    leader = Leader()
    leader.quorum.member = False
    assert not leader.admits()
    leader.others[2].acked_sent_at = 10.5
    assert leader.admits()


def test_one_that_was_away_has_to_catch_up_once_more() -> None:
    leader = Leader()
    leader.new.up = False
    leader.admission.tick()
    leader.new.up = True
    leader.context.journal.last_index = LAST + 1
    assert not leader.admits()
    assert not leader.admits()
    leader.new.match = LAST + 1
    leader.context.now = 11.0
    assert leader.admits()


class Follower:
    """A follower without the right to vote, as its leader `p` may grant it."""

    def __init__(self, *, held: bool = False, leader: str = "p") -> None:
        self.granted: list[int] = []
        self.voted: list[tuple[int, str]] = []
        self.p, self.q = peer("p", voter=True), peer("q", voter=True)
        nodes = {"p": self.p.node, "q": self.q.node}
        context = SimpleNamespace(
            replica=SimpleNamespace(term=TERM, leader_node=nodes[leader]),
            journal=SimpleNamespace(setCurrentTerm=lambda term, name: self.voted.append((term, name))),
        )
        right = SimpleNamespace(held=held, granted=self.granted.append)
        self.admission = Admission(cast(Any, context), cast(Any, None), cast(Any, right), cast(Any, None))


def test_it_takes_the_right_but_not_for_this_term() -> None:
    node = Follower()
    node.admission.admitted(node.p, Admit(TERM))
    assert (node.granted, node.voted) == ([TERM], [(TERM, "p")])


@pytest.mark.parametrize(("node", "term"), [
    (Follower(held=True), TERM), (Follower(), TERM - 1), (Follower(leader="q"), TERM),
], ids=["has it", "an older term", "another leader"])
def test_it_does_not_take_it_twice_late_or_from_another(node: Follower, term: int) -> None:
    node.admission.admitted(node.p, Admit(term))
    assert (node.granted, node.voted) == ([], [])
