"""Each condition of the transport alone: accepted messages, notifications of peers, and the end of a lease."""

from __future__ import annotations

import random
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.transport import RaftTransport
from sockpqd.cluster.wire.messages import Ack, Heartbeat, SnapshotChunk, StaleTerm

TERM = 7
NOW = 64.0


class Node:
    """The transport of a leader with its peer `p`, which votes and is connected; and the calls of the parts around it.
    """

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.given: list[Any] = []          # to the library
        self.acknowledged: list[tuple[str, int]] = []
        settings = SimpleNamespace(name="me", election_min_ms=500, election_max_ms=600, lease_ms=400, heartbeat_ms=100)
        journal = SimpleNamespace(acknowledge=lambda name, index: self.acknowledged.append((name, index)), last_index=9)
        network = SimpleNamespace(buffered_bytes=lambda name: 0, send=lambda name, message: self.calls.append(message))
        self.transport = RaftTransport(
            *(cast(Any, one) for one in (settings, journal, None, network, random.Random(1))))
        self.replica = SimpleNamespace(term=TERM, commit_index=5, is_leader=True, leader_node=None)
        self.transport.context.replica = cast(Any, self.replica)
        self.transport.context.now = NOW
        self.transport.context.deliver = lambda node, message: self.given.append(message)
        self.transport._onMessageReceived = lambda node, message: self.given.append(message)
        self.transport._onReadonlyNodeDisconnected = lambda node: None
        self.until = NOW + 1.0              # of the lease
        self.transport.elections = cast(Any, SimpleNamespace(
            leader_lost=lambda: self.calls.append("lost"), leader_sends=lambda: self.calls.append("sends"),
            leader_heard=lambda promise_ms: self.calls.append("heard"), offered=False))
        self.transport.right = cast(Any, SimpleNamespace(leader_heard=lambda: None))
        self.transport.quorum = cast(Any, SimpleNamespace(
            promised_until=lambda: self.until, change=lambda voters, learns: None, majority=2))
        self.transport.lease = cast(Any, SimpleNamespace(lapsed=lambda now: self.calls.append("lapsed")))
        self.transport.meet("p")
        self.peer.up, self.peer.term, self.peer.match = True, TERM, 4
        self.peer.info = cast(Any, SimpleNamespace(voter=True))

    @property
    def peer(self) -> Peer:
        return self.transport.peers["p"]

    def follow(self, *, whom: Any) -> None:
        self.replica.is_leader, self.replica.leader_node = False, whom


@pytest.fixture
def node() -> Node:
    return Node()


class TestPeers:
    def test_a_removed_one_leaves_a_while_after_its_removal(self, node: Node) -> None:
        transport, context = node.transport, node.transport.context
        transport.meet("q")
        transport.change_members(["me", "q"], ["q"], NOW, learns=False)
        leaves_at = node.peer.leaves_at
        assert leaves_at > NOW
        assert (node.peer.leaving, transport.peers["q"].leaving, transport.peers["q"].leaves_at) == (True, False, 0.0)
        transport.change_members(["me", "q"], ["q"], NOW + 0.5, learns=False)
        assert node.peer.leaves_at == leaves_at         # no longer than that
        context.now = leaves_at - 0.01
        assert transport.remove_departed() == []
        assert transport.members_leaving
        context.now = leaves_at
        assert transport.remove_departed() == ["p"]
        assert (list(transport.peers), transport.members_leaving) == (["q"], False)

    def test_the_leader_stays_until_there_is_another(self, node: Node) -> None:
        node.transport.change_members(["me"], [], NOW, learns=False)
        node.transport.context.now += 3600
        node.follow(whom=node.peer.node)
        assert node.transport.remove_departed() == []
        node.follow(whom=None)
        assert node.transport.remove_departed() == ["p"]

    @pytest.mark.parametrize(("whom", "leads", "calls"), [
        ("p", False, ["lost"]), ("p", True, []), (None, False, [])])
    def test_a_leader_whose_connection_ends_is_lost(
        self, whom: str | None, leads: bool, calls: list[str], node: Node,
    ) -> None:
        node.replica.is_leader, node.replica.leader_node = leads, node.peer.node if whom else None
        node.transport.link_down("p")
        assert node.calls == calls

    @pytest.mark.parametrize(("whom", "leads", "calls"), [
        ("p", False, ["sends"]), ("p", True, []), (None, False, [])])
    def test_a_leader_that_sends_a_large_message_is_alive(
        self, whom: str | None, leads: bool, calls: list[str], node: Node,
    ) -> None:
        node.replica.is_leader, node.replica.leader_node = leads, node.peer.node if whom else None
        node.transport.receiving("p", NOW + 1)
        assert node.calls == calls

    @pytest.mark.parametrize(("before", "now", "forgotten"), [
        (False, True, True), (None, True, False), (True, True, False), (False, False, False), (True, False, False)])
    def test_what_it_acknowledged_without_a_vote_is_forgotten(
        self, before: bool | None, now: bool, forgotten: bool, node: Node,
    ) -> None:
        node.peer.info = None if before is None else cast(Any, SimpleNamespace(voter=before))
        node.peer.promised_until = NOW
        node.transport._info(node.peer, cast(Any, SimpleNamespace(voter=now)))
        assert (node.peer.match == 0, node.peer.promised_until == float("-inf")) == (forgotten, forgotten)

    @pytest.mark.parametrize(("leads", "term", "noted"), [
        (True, TERM, [("p", 4)]), (False, TERM, []), (True, TERM - 1, [])])
    def test_what_it_acknowledged_to_this_leadership_is_noted(
        self, leads: bool, term: int, noted: list[tuple[str, int]], node: Node,
    ) -> None:
        node.replica.is_leader, node.peer.term = leads, term
        node.transport._note_acknowledged(node.peer)
        assert node.acknowledged == noted

    @pytest.mark.parametrize("what", ["leaving", "choked", "sending", "unheard", "no voter", "down"])
    def test_who_needs_more_than_entries(self, what: str, node: Node) -> None:
        assert not node.transport.unsettled
        if what == "leaving":
            node.transport.members_leaving = True
        elif what == "choked":
            node.peer.choked = True
        elif what == "sending":
            node.peer.sending = cast(Any, object())
        elif what == "unheard":
            node.peer.info = None
        else:
            node.peer.info = cast(Any, SimpleNamespace(voter=False))
            node.peer.up = what != "down"
        assert node.transport.unsettled is (what != "down")


class TestMessages:
    def test_what_the_library_should_not_send_is_dropped(self, node: Node) -> None:
        message = {"type": "apply_command", "request_id": 3}
        assert node.transport.send(node.peer.node, message)
        assert [given["request_id"] for given in node.given] == [3]
        assert node.transport.send(node.peer.node, {"type": "apply_command"})
        assert not node.transport.send(node.peer.node, {"type": "request_vote"})
        assert len(node.given) == 1

    @pytest.mark.parametrize(("term", "heard"), [(TERM - 1, False), (TERM, True), (TERM + 1, True)])
    def test_a_heartbeat_counts_unless_its_term_is_over(self, term: int, heard: bool, node: Node) -> None:
        node.follow(whom=node.peer.node)
        node.transport.receive("p", Heartbeat(term, 1, 8.0, 5, 300))
        assert ("heard" in node.calls, node.acknowledged) == (heard, [("p", 5)] * heard)

    @pytest.mark.parametrize(("term", "heard"), [(TERM - 1, False), (TERM, True), (TERM + 1, True)])
    def test_so_does_a_part_of_a_snapshot(self, term: int, heard: bool, node: Node) -> None:
        node.follow(whom=node.peer.node)
        node.transport._transfers = cast(Any, SimpleNamespace(receive_chunk=lambda peer, chunk: None))
        node.transport.receive("p", SnapshotChunk(term, 1, 8.0, 5, 1, 0, b"", False, 300))
        assert ("heard" in node.calls, node.acknowledged) == (heard, [("p", 5)] * heard)


    @pytest.mark.parametrize(("term", "adopted"), [(TERM - 1, False), (TERM + 1, True)])
    def test_a_higher_term_is_adopted(self, term: int, adopted: bool, node: Node) -> None:
        node.transport.receive("p", StaleTerm(term))
        assert [given["term"] for given in node.given] == [term] * adopted


class TestLease:
    @pytest.mark.parametrize(("at_tick", "now_until", "leads", "lapsed"), [
        (-0.5, -0.5, True, True), (0.0, 0.0, True, True), (0.5, -0.5, True, False), (-0.5, 0.5, True, False),
        (-0.5, -0.5, False, False)])
    def test_when_it_is_over(
        self, at_tick: float, now_until: float, leads: bool, lapsed: bool, node: Node,
    ) -> None:
        node.transport._lease_ends, node.until, node.replica.is_leader = NOW + at_tick, NOW + now_until, leads
        assert node.transport.lapsed(NOW) is lapsed
        assert node.calls == ["lapsed"] * lapsed

    def test_what_was_known_at_the_last_tick_is_not_counted_once_more(self, node: Node) -> None:
        node.transport._lease_ends = NOW + 0.5
        node.transport.quorum = cast(Any, None)
        assert not node.transport.lapsed(NOW)

    @pytest.mark.parametrize(("name", "leads", "term", "of", "counts"), [
        ("p", True, TERM, TERM, True), ("x", True, TERM, TERM, False), ("p", False, TERM, TERM, False),
        ("p", True, TERM - 1, TERM, False), ("p", True, TERM, TERM - 1, False),
        ("p", True, TERM - 1, TERM - 1, False),
    ])
    def test_a_promise_counts_for_the_leadership_that_asked_for_it(
        self, name: str, leads: bool, term: int, of: int, counts: bool, node: Node,
    ) -> None:
        node.replica.is_leader, node.peer.term = leads, of
        node.transport.note_promise(name, Ack(term, 1, 60.0, 5, False, True, None, 500))
        assert (node.peer.promised_until > float("-inf")) is counts
