"""Each condition of the steady lane alone: the work of a turn, who is sent entries, and which message is followed."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.raft.steady_lane import SteadyLane
from sockpqd.cluster.wire.messages import Ack, Append

TERM = 7
LAST = 20                       # our last entry, of this term


class Node:
    """A lane, and stand-ins for the node around it, which note their calls."""

    def __init__(self) -> None:
        self.did: list[Any] = []
        self.sent: list[tuple[str, Any]] = []
        self.match = LAST
        self.room = True
        self.buffered = 0
        self.entry_bytes = limits.POSTPONED_BYTES_MAX
        self.terms = {LAST: TERM, LAST - 1: TERM, LAST - 2: TERM - 1}
        self.replica: SimpleNamespace = SimpleNamespace(
            is_leader=True, attention=False, proposed=[], term=TERM, commit_index=LAST - 3, followed=True,
            applied_index=LAST - 3, behind=False,
            apply_committed=lambda: self.did.append("apply"), commit_to=lambda index: self.did.append(index),
            append_proposed=self.append_proposed, sent=lambda node, index: None,
            beaten=lambda now: self.did.append("beaten"),
            follows=lambda node, term: self.replica.followed and term == TERM,
            extend=lambda entries, commit: self.did.append((len(entries), commit)),
        )
        self.journal = SimpleNamespace(
            last_index=LAST, last_term=TERM, term_at=self.terms.get, has_room_for=lambda entries: self.room,
            bytes_from=lambda index: (LAST + 1 - index) * self.entry_bytes)
        self.peer = Peer(PeerNode("p"))
        self.peer.up, self.peer.term, self.peer.sent_up_to, self.peer.epoch = True, TERM, (LAST, TERM), 3
        network = SimpleNamespace(
            send=lambda name, message: self.sent.append((name, message)), buffered_bytes=lambda name: self.buffered)
        context = SimpleNamespace(
            replica=self.replica, journal=self.journal, peers={"p": self.peer}, network=network, now=1.5,
            promise_ms=300,
            send=lambda peer, message: self.sent.append((peer.name, message)),
        )
        self.lane = SteadyLane(cast(Any, context), cast(Any, SimpleNamespace(match=lambda: self.match)))

    def append_proposed(self) -> tuple[bytes, int, int]:
        self.journal.last_index += 1
        return self.replica.proposed.pop(0), self.journal.last_index, TERM

    def propose(self) -> None:
        self.match = 0
        self.replica.proposed[:] = [b"\0a", b"\0b"]

    def follow(self, entries: list[tuple[bytes, int, int]], index: int = LAST, term: int = TERM) -> bool:
        self.replica.is_leader = False
        return self.lane.follow(self.peer, Append(TERM, 5, 1.25, LAST - 1, index, term, entries))


@pytest.fixture
def node() -> Node:
    return Node()


def test_a_leader_commits_what_a_majority_has_and_applies_it(node: Node) -> None:
    assert node.lane.turn()
    assert node.did == [LAST, "apply"]


@pytest.mark.parametrize(
    ("match", "commit"), [(LAST - 4, False), (LAST - 3, False), (LAST - 2, False), (LAST - 1, True)],
)
def test_it_commits_nothing_again_and_nothing_of_an_older_term(node: Node, match: int, commit: bool) -> None:
    node.terms[LAST - 3] = node.terms[LAST - 4] = TERM
    node.match = match
    assert node.lane.turn()
    assert node.did == ([match] if commit else []) + ["apply"]


def test_with_all_committed_it_counts_nobody(node: Node) -> None:
    node.replica.commit_index, node.match = LAST, LAST + 1
    node.terms[LAST + 1] = TERM
    assert node.lane.turn()
    assert node.did == ["apply"]


def test_a_follower_commits_nothing_by_itself(node: Node) -> None:
    node.replica.is_leader = False
    node.replica.commit_index = LAST
    assert node.lane.turn()
    assert node.did == ["apply"]


def few_committed(node: Node) -> None:
    """Let this node follow, with an entry that is not known to be committed after some that are."""
    node.replica.is_leader = False
    node.replica.commit_index = LAST - 1
    node.replica.applied_index = LAST - 1 - limits.POSTPONED_ENTRIES_MAX


def test_a_follower_postpones_few_small_entries_while_others_follow_them(node: Node) -> None:
    few_committed(node)
    assert node.lane.turn()
    assert node.did == []


@pytest.mark.parametrize("change", [
    lambda node: setattr(node.replica, "commit_index", LAST),                       # no message comes soon
    lambda node: setattr(node.replica, "applied_index", node.replica.applied_index - 1),        # they are not few
    lambda node: setattr(node, "entry_bytes", limits.POSTPONED_BYTES_MAX + 1),
    lambda node: setattr(node.replica, "behind", True),
    lambda node: setattr(node.lane, "prompt", True),
    lambda node: setattr(node.replica, "is_leader", True),
])
def test_otherwise_it_applies_all_of_them(node: Node, change: Callable[[Node], None]) -> None:
    few_committed(node)
    node.match = 0
    change(node)
    assert node.lane.turn()
    assert node.did == ["apply"]


def test_a_closed_lane_and_one_whose_library_has_something_to_do_leave_the_turn_to_it(node: Node) -> None:
    node.lane.open = False
    assert not node.lane.turn()
    node.lane.open, node.replica.attention = True, True
    assert not node.lane.turn()
    assert node.did == []


def test_so_does_what_was_given_to_the_library_by_what_was_applied(node: Node) -> None:
    node.replica.apply_committed = lambda: setattr(node.replica, "attention", True)
    assert not node.lane.turn()


def test_proposals_are_appended_and_sent_in_order(node: Node) -> None:
    node.propose()
    assert node.lane.turn()
    assert [(name, message.prev_index, message.entries) for name, message in node.sent] == [
        ("p", LAST, [(b"\0a", LAST + 1, TERM)]), ("p", LAST + 1, [(b"\0b", LAST + 2, TERM)])]
    assert {message.promise_ms for _, message in node.sent} == {300}
    assert node.peer.sent_up_to == (LAST + 2, TERM)
    assert node.did == ["apply", "beaten"]
    assert node.lane.entries == 2


def test_a_turn_without_proposals_is_no_heartbeat(node: Node) -> None:
    node.match = 0
    assert node.lane.turn()
    assert node.did == ["apply"]
    assert node.lane.sent_at == float("-inf")


def test_a_follower_leaves_proposals_to_the_library(node: Node) -> None:
    node.propose()
    node.replica.is_leader = False
    assert not node.lane.turn()
    assert len(node.replica.proposed) == 2


@pytest.mark.parametrize("lacks", ["end", "term of the end", "leadership", "snapshot", "room"])
def test_a_peer_that_is_out_of_step_leaves_them_to_the_library(node: Node, lacks: str) -> None:
    node.propose()
    if lacks == "end":
        node.peer.sent_up_to = (LAST - 1, TERM)
    elif lacks == "term of the end":
        node.peer.sent_up_to = (LAST, TERM - 1)
    elif lacks == "leadership":
        node.peer.term = TERM - 1
    elif lacks == "snapshot":
        node.peer.sending = cast(Any, object())
    else:
        node.buffered = limits.CHOKE_BYTES + 1
    assert not node.lane.turn()
    assert len(node.replica.proposed) == 2
    assert node.sent == []


def test_so_much_may_wait_for_a_peer(node: Node) -> None:
    node.propose()
    node.buffered = limits.CHOKE_BYTES
    assert node.lane.turn()
    assert len(node.sent) == 2


@pytest.mark.parametrize("how", ["down", "choked"])
def test_who_gets_entries_later_is_sent_nothing_and_keeps_nobody_waiting(node: Node, how: str) -> None:
    node.propose()
    node.peer.sent_up_to = None
    node.peer.up, node.peer.choked = how != "down", how == "choked"
    assert node.lane.turn()
    assert node.replica.proposed == node.sent == []


@pytest.mark.parametrize("count", [0, 2])
def test_a_follower_takes_what_continues_its_log(node: Node, count: int) -> None:
    entries = [(b"\0a", LAST + 1, TERM), (b"\1", LAST + 2, TERM)][:count]
    node.room = bool(count)                     # a heartbeat needs none
    assert node.follow(entries)
    assert node.did == [(count, LAST - 1)]
    assert node.sent == [("p", Ack(TERM, 5, 1.25, LAST + count + 1, False, True))]
    assert (node.lane.entries, node.lane.followed_at) == (count, 1.5)


@pytest.mark.parametrize("wrong", ["closed", "leader", "index", "term", "room", "number", "gap", "kind"])
def test_anything_else_is_not_for_the_lane(node: Node, wrong: str) -> None:
    node.lane.open = wrong != "closed"
    node.replica.followed = wrong != "leader"
    node.room = wrong != "room"
    number = LAST + 2 if wrong == "number" else LAST + 1
    entries = [(b"\0a", number, TERM), (b"\2" if wrong == "kind" else b"\0", number + 1 + (wrong == "gap"), TERM)]
    assert not node.follow(entries, LAST - 1 if wrong == "index" else LAST, TERM - 1 if wrong == "term" else TERM)
    assert node.did == node.sent == []


@pytest.mark.parametrize(("index", "term"), [(LAST - 1, TERM), (LAST + 1, TERM), (LAST, TERM - 1)])
def test_a_heartbeat_that_does_not_name_the_end_of_the_log_says_nothing(node: Node, index: int, term: int) -> None:
    assert not node.follow([], index, term)
    assert node.did == node.sent == []
