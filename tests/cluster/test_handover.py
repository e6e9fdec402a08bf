"""The choice of a successor, when leadership is handed over, and why it cannot be."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.leader.handover import Handover
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode

LAST = 20


class Node:
    """A leader with stand-ins for the node around its handover, and two peers that could take over at once."""

    def __init__(self) -> None:
        self.offered: list[str] = []
        self.peers = {name: fit(name) for name in ("p", "q")}
        self.proposer = SimpleNamespace(idle=True, unwatched=True)
        self.members = SimpleNamespace(names=("me", "p", "q"), voters=("me", "p", "q"))
        self.transport = SimpleNamespace(
            context=SimpleNamespace(journal=SimpleNamespace(last_index=LAST)), peers=self.peers,
            quorum=SimpleNamespace(peers=list(self.peers.values())),
            hand_over=lambda peer: self.offered.append(peer.name),
        )
        self.handover = Handover(cast(Any, self.transport), cast(Any, self.members), cast(Any, self.proposer))

    def spoil(self, name: str, what: str) -> None:
        """Make a peer unable to lead."""
        peer: Any = self.peers[name]
        if what == "learner":
            self.members.voters = tuple(voter for voter in self.members.voters if voter != name)
        elif what == "up":
            peer.up = False
        elif what == "unheard":
            peer.info = None
        elif what == "choked":
            peer.choked = True
        elif what == "sending":
            peer.sending = object()
        else:
            setattr(peer.info, what, not getattr(peer.info, what))


def fit(name: str) -> Peer:
    peer = Peer(PeerNode(name))
    peer.up, peer.match = True, LAST
    peer.info = cast(Any, SimpleNamespace(online=True, exhausted=False, full=False, voter=True))
    return peer


UNFIT = [
    ("learner", "learner"), ("up", "down"), ("unheard", "down"), ("online", "offline"), ("exhausted", "full"),
    ("choked", "behind"), ("sending", "behind"), ("voter", "behind"),
]


@pytest.mark.parametrize(("what", "word"), UNFIT)
def test_a_peer_that_cannot_lead_is_not_asked_and_the_reason_is_said(what: str, word: str) -> None:
    node = Node()
    node.spoil("p", what)
    assert node.handover.transferee() is node.peers["q"]
    assert node.handover.begin("p") == word
    assert not node.handover.wanted
    assert node.handover.begin(None) is None
    node.spoil("q", what)
    assert node.handover.transferee() is None


def test_of_peers_that_can_lead_one_with_room_for_jobs_is_asked_first() -> None:
    node = Node()
    node.spoil("p", "full")
    for now in (10.0, 10.0 + limits.HAND_OVER_RETRY_S):
        node.handover.tick(now)
    assert node.offered == ["q", "q"]
    node.spoil("q", "full")
    assert node.handover.transferee() is node.peers["p"]


@pytest.mark.parametrize(("what", "_word"), UNFIT)
def test_without_one_that_can_lead_it_is_alone(what: str, _word: str) -> None:
    node = Node()
    node.spoil("p", what)
    node.spoil("q", what)
    assert node.handover.begin(None) == "alone"
    assert not node.handover.wanted


def test_only_a_peer_with_the_whole_log_is_asked_and_the_others_are_waited_for() -> None:
    node = Node()
    node.peers["p"].match = LAST - 1
    node.peers["q"].match = 0
    assert node.handover.transferee() is None
    assert node.handover.begin("q") is None
    node.peers["p"].match = LAST
    assert node.handover.transferee() is None
    node.handover.end()
    assert node.handover.transferee() is node.peers["p"]


def test_who_was_named_is_asked_and_nobody_else() -> None:
    node = Node()
    assert node.handover.begin("q") is None
    assert node.handover.wanted
    assert node.handover.begin("p") == node.handover.begin(None) == "busy"
    node.handover.tick(0.0)
    node.handover.tick(limits.HAND_OVER_RETRY_S)
    assert node.offered == ["q", "q"]
    node.handover.end()
    assert not node.handover.wanted


@pytest.mark.parametrize("names", [("me", "p"), ("me", "p", "q", "x")])
def test_a_name_is_of_a_member_that_is_a_peer(names: tuple[str, ...]) -> None:
    node = Node()
    node.members.names = names
    assert node.handover.begin("x" if "x" in names else "q") == "unknown"


def test_an_offer_that_came_to_nothing_is_followed_by_one_to_another_after_a_while() -> None:
    node = Node()
    for now in (10.0, 10.0 + limits.HAND_OVER_RETRY_S / 2, 10.0 + limits.HAND_OVER_RETRY_S):
        node.handover.tick(now)
    assert node.offered == ["p", "q"]
    node.handover.tick(10.0 + 2 * limits.HAND_OVER_RETRY_S)
    assert node.offered == ["p", "q", "p"]


def test_every_proposal_has_an_outcome_first() -> None:
    node = Node()
    node.proposer.idle = False
    node.handover.tick(1.0)
    assert node.offered == []
    node.proposer.idle = True
    node.handover.tick(1.0)
    assert node.offered == ["p"]


def test_while_nobody_can_take_over_nobody_is_asked() -> None:
    node = Node()
    for name in node.peers:
        node.spoil(name, "online")
    node.handover.tick(1.0)
    node.spoil("q", "online")
    node.handover.tick(1.0)
    assert node.offered == ["q"]


@pytest.mark.parametrize("what", ["up", "unheard", "online"])
def test_there_are_successors_while_one_is_there(what: str) -> None:
    node = Node()
    node.spoil("p", what)
    assert node.handover.successors()
    node.spoil("q", what)
    assert not node.handover.successors()
