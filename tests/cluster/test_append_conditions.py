"""Each condition of sending and receiving entries alone: what is sent, counted, refused, cut and answered."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.errors import FailStop, RaftViolated
from sockpqd.cluster.raft.append_entries import Receiver, Sender
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.wire.messages import Ack, Append, Heartbeat, StaleTerm

TERM = 7
HEARTBEAT_S = 0.5               # a binary fraction: exactly then

Entry = tuple[bytes, int, int]


class Log:
    """A journal in memory: the terms of its entries, from the first index on."""

    def __init__(self, *terms: int, first: int = 1) -> None:
        self.first_index = first
        self.terms = list(terms)
        self.room = True
        self.segments = SimpleNamespace(short=False)

    @property
    def last_index(self) -> int:
        return self.first_index + len(self.terms) - 1

    @property
    def last_term(self) -> int:
        return self.terms[-1]

    def term_at(self, index: int) -> int | None:
        return self.terms[index - self.first_index] if self.first_index <= index <= self.last_index else None

    def has_room_for(self, entries: Sequence[Entry]) -> bool:
        return self.room

    def __getitem__(self, part: slice) -> list[Entry]:
        return [(b"\0", self.first_index + at, term) for at, term in enumerate(self.terms)][part]


class Node:
    """A sender and a receiver with stand-ins for the node around them, and one peer."""

    def __init__(self, log: Log | None = None, *, commit: int = 2) -> None:
        self.log = log or Log(5, 5, 6, TERM, TERM)
        self.given: list[dict[str, Any]] = []       # to the library
        self.sent: list[Any] = []
        self.calls: list[Any] = []
        self.buffered = 0
        self.leading = True
        self.taken = False                          # by the lane
        self.peer = Peer(PeerNode("p"))
        self.peer.up, self.peer.term, self.peer.epoch = True, TERM, 3
        self.context = SimpleNamespace(
            name="me", now=10.0, promise_ms=300, journal=self.log,
            replica=SimpleNamespace(term=TERM, commit_index=commit),
            peers={"p": self.peer}, leads=lambda: self.leading, send=lambda peer, message: self.sent.append(message),
            deliver=lambda node, message: self.given.append(message),
            network=SimpleNamespace(buffered_bytes=lambda name: self.buffered),
        )
        context = cast(Any, self.context)
        self.sender = Sender(
            context, cast(Any, SimpleNamespace(heard=lambda: self.calls.append("heard"))),
            cast(Any, SimpleNamespace(
                begin=lambda peer: self.calls.append("begin"),
                finished=lambda peer, number, accepted: self.calls.append((number, accepted)))),
            HEARTBEAT_S, lambda node: self.calls.append("connected"), lambda node: self.calls.append("disconnected"),
        )
        self.receiver = Receiver(context, cast(Any, SimpleNamespace(follow=lambda peer, message: self.taken)))

    def wants(self, index: int | None, *entries: Entry, **others: Any) -> None:
        """Let the library append these entries after this index."""
        term = None if index is None else self.log.term_at(index)
        self.sender.append(self.peer, {
            "term": TERM, "commit_index": 2, "prevLogIdx": index, "prevLogTerm": term, "entries": list(entries),
            **others,
        })

    def frames(self) -> list[tuple[int, int, list[int]]]:
        """Return the sent frames: the index and term before, and the indexes."""
        return [
            (message.prev_index, message.prev_term, [entry[1] for entry in message.entries]) for message in self.sent]

    def ack(self, next_index: int = 6, *, term: int = TERM, epoch: int = 3, sent: float = 9.0, **kind: Any) -> None:
        said = {"reset": False, "success": True, **kind}
        self.sender.acknowledged(self.peer, Ack(term, epoch, sent, next_index, **said))

    def receive(self, index: int, term: int, *terms: int, commit: int = 2, kind: bytes = b"\0") -> list[Any]:
        """Receive entries of these terms after this index; returns the answers as (next index, reset, success)."""
        entries = [(kind, index + 1 + at, of) for at, of in enumerate(terms)]
        assert self.receiver.append(self.peer, Append(TERM, 4, 8.0, commit, index, term, entries))
        answers = [(answer.next_index, answer.reset, answer.success) for answer in self.sent]
        assert all((answer.term, answer.epoch, answer.sent) == (TERM, 4, 8.0) for answer in self.sent)
        return answers


def entry(index: int, size: int = 1, term: int = TERM) -> Entry:
    return bytes(size), index, term


class TestSending:
    def test_entries_go_out_behind_what_was_sent_and_are_not_sent_twice(self) -> None:
        node = Node()
        node.wants(3, entry(4), entry(5))
        node.wants(3, entry(4), entry(5))
        node.log.terms.append(TERM)
        node.wants(4, entry(5), entry(6))
        node.wants(6)
        assert node.frames() == [(3, 6, [4, 5]), (5, TERM, []), (5, TERM, [6]), (6, TERM, [])]
        assert node.peer.sent_up_to == (6, TERM)
        assert node.sender.sent_at == 10.0
        assert {message.promise_ms for message in node.sent} == {300}

    def test_a_library_that_looks_beyond_the_log_probes_its_end(self) -> None:
        node = Node()
        node.wants(None)
        assert node.frames() == [(5, TERM, [])]

    def test_it_may_ask_for_more_than_was_sent(self) -> None:
        node = Node()
        node.peer.sent_up_to = (3, 6)
        node.wants(4, entry(5))
        assert node.frames() == [(4, TERM, [5])]

    def test_what_the_library_cannot_send_stops_the_node(self) -> None:
        with pytest.raises(FailStop):
            Node().wants(3, transmission="start")

    def test_a_snapshot_chokes_the_peer_and_shows_that_the_leader_lives(self) -> None:
        node = Node()
        node.wants(3, serialized=b"")
        assert node.calls == ["begin", "disconnected"]
        assert node.sent == [Heartbeat(TERM, node.peer.epoch, 10.0, 2, 300)]
        node.wants(3, entry(4))
        assert len(node.sent) == 1
        assert node.peer.choked

    def test_large_entries_go_out_in_several_frames(self) -> None:
        node = Node()
        node.wants(3, entry(4, limits.APPEND_BYTES - 1), entry(5, 1), entry(6))
        assert node.frames() == [(3, 6, [4, 5]), (5, TERM, [6])]

    @pytest.mark.parametrize(("buffered", "choked"), [(limits.CHOKE_BYTES, False), (limits.CHOKE_BYTES + 1, True)])
    def test_a_peer_that_does_not_keep_up_is_choked(self, buffered: int, choked: bool) -> None:
        node = Node()
        node.buffered = buffered
        node.wants(3, entry(4))
        assert (node.peer.choked, len(node.sent)) == (choked, not choked)
        node.peer.choked = False
        node.wants(4)
        assert not node.peer.choked                     # a probe is small

    @pytest.mark.parametrize(("more", "choked"), [(0, False), (1, True)])
    def test_also_by_what_is_being_sent(self, more: int, choked: bool) -> None:
        node = Node()
        node.buffered = limits.CHOKE_BYTES - limits.APPEND_BYTES + more
        node.wants(3, entry(4, limits.APPEND_BYTES), entry(5))
        assert node.peer.choked is choked
        assert node.frames() == [(3, 6, [4])] + ([] if choked else [(4, TERM, [5])])

    def test_the_commit_index_goes_to_peers_that_keep_up(self) -> None:
        node = Node()
        node.sender.send_commit_index()                 # not known where the peer is
        assert node.sent == []
        node.peer.sent_up_to = (4, TERM)
        node.sender.send_commit_index()
        assert node.frames() == [(4, TERM, [])]
        node.peer.choked = True
        node.sender.send_commit_index()
        assert len(node.sent) == 1


class TestAnswers:
    def test_one_counts(self) -> None:
        node = Node()
        node.ack(5, sent=9.0)
        node.ack(4, sent=8.0)
        assert (node.peer.match, node.peer.acked_sent_at) == (4, 9.0)
        assert node.calls == ["heard", "heard"]

    @pytest.mark.parametrize("wrong", ["follower", "term"])
    def test_one_does_not(self, wrong: str) -> None:
        node = Node()
        node.leading = wrong != "follower"
        node.ack(5, term=TERM - (wrong == "term"))
        assert (node.peer.match, node.peer.acked_sent_at, node.calls) == (0, float("-inf"), [])

    def test_a_sign_of_life_says_nothing_of_the_log(self) -> None:
        node = Node()
        node.ack(5, success=False)
        assert (node.peer.match, node.peer.acked_sent_at) == (0, 9.0)
        assert node.given == node.sent == []

    def test_one_that_asks_for_other_entries_gets_them_once(self) -> None:
        node = Node()
        node.ack(4, reset=True, success=True)
        assert node.peer.match == 0
        assert [message["next_node_idx"] for message in node.given] == [4]
        assert node.frames() == [(3, 6, [4, 5])]
        assert node.peer.epoch == 4
        node.ack(3, reset=True, success=False)          # of the epoch before
        assert (node.peer.epoch, len(node.given), len(node.sent)) == (4, 1, 1)

    def test_what_is_compacted_is_left_to_the_library(self) -> None:
        node = Node(Log(6, TERM, first=10))
        node.ack(10, reset=True, success=False)
        assert [message["next_node_idx"] for message in node.given] == [10]
        assert node.sent == []

    def test_a_choked_peer_is_sent_nothing_and_is_asked_again_when_it_has_taken_what_waited(self) -> None:
        node = Node()
        node.peer.choked = True
        node.buffered = limits.UNCHOKE_BYTES + 1
        node.ack(4, reset=True, success=False)
        assert (node.peer.choked, node.given, node.sent, node.calls) == (True, [], [], ["heard"])
        node.buffered = limits.UNCHOKE_BYTES
        node.peer.sending = cast(Any, object())
        node.ack(3)
        assert node.peer.choked
        node.peer.sending = None
        node.ack(3)
        assert (node.peer.choked, node.calls[-1]) == (False, "connected")
        assert [message["next_node_idx"] for message in node.given] == [3]

    def test_an_unchoked_peer_goes_on_behind_what_was_sent_last(self) -> None:
        node = Node()
        node.peer.choked, node.peer.sent_up_to = True, (4, TERM)
        node.ack(3)
        assert [message["next_node_idx"] for message in node.given] == [5]
        unknown = Node()
        unknown.peer.choked = True
        unknown.ack(0, success=False)
        assert (unknown.peer.choked, unknown.given) == (False, [])

    def test_a_peer_that_keeps_up_is_not_told_to_be_connected(self) -> None:
        node = Node()
        node.ack(5)
        assert (node.calls, node.given) == (["heard"], [])

    @pytest.mark.parametrize("accepted", [True, False])
    def test_the_outcome_of_a_snapshot_is_passed_on(self, accepted: bool) -> None:
        node = Node()
        node.ack(4, success=accepted, snapshot=17)
        assert (17, accepted) in node.calls
        node.ack(4)
        assert node.calls.count("heard") == 2
        assert len(node.calls) == 3


class TestTicks:
    def test_only_peers_that_the_library_reaches_late_get_a_heartbeat_in_time(self) -> None:
        node = Node()
        node.sender.tick()
        assert node.sent == []
        for choked, buffered, beats in (
            (True, 0, 1), (False, limits.CROWDED_BYTES, 0), (False, limits.CROWDED_BYTES + 1, 1),
        ):
            node.sent.clear()
            node.peer.choked, node.buffered = choked, buffered
            node.peer.beat_at = 10.0
            node.context.now = 10.0 + HEARTBEAT_S * 0.75
            node.sender.tick()
            assert node.sent == []
            node.context.now = 10.0 + HEARTBEAT_S
            node.sender.tick()
            assert len(node.sent) == beats
            assert node.peer.beat_at == node.context.now

    def test_nobody_is_unchoked_by_a_leader_and_everybody_by_a_follower(self) -> None:
        node = Node()
        node.peer.choked = True
        node.sender.tick()
        assert node.peer.choked
        node.leading = False
        node.peer.match = 3
        node.peer.up = False
        node.sender.tick()
        assert node.peer.choked
        node.peer.up = True
        node.sender.tick()
        assert not node.peer.choked
        assert node.given == []                 # nothing is sent next: it does not lead


class TestReceiving:
    def test_a_message_of_an_old_term_is_refused(self) -> None:
        node = Node()
        assert not node.receiver.heartbeat(node.peer, Heartbeat(TERM - 1, 4, 8.0, 2))
        assert node.sent == [StaleTerm(TERM)]
        assert node.given == []
        assert node.receiver.heartbeat(node.peer, Heartbeat(TERM, 4, 8.0, 2))
        assert node.sent[1:] == [Ack(TERM, 4, 8.0, 0, False, False)]

    def test_what_the_lane_took_is_not_handled_again(self) -> None:
        node = Node()
        node.taken = True
        assert node.receive(5, TERM, TERM) == []
        assert node.given == []

    def test_no_heartbeat_commits_more(self) -> None:
        node = Node()
        node.receiver.heartbeat(node.peer, Heartbeat(TERM, 4, 8.0, 5))
        node.receiver.heartbeat(node.peer, Heartbeat(TERM, 4, 8.0, 1))
        assert [message["commit_index"] for message in node.given] == [2, 1]

    def test_the_library_answers_the_message_that_it_was_given_unless_it_is_mute(self) -> None:
        node = Node()
        answer = {"next_node_idx": 6, "reset": False, "success": True}
        node.receiver.library_answers(node.peer, answer)
        assert node.sent == []
        node.receiver.begin(Heartbeat(TERM, 4, 8.0, 0, 70))
        node.receiver.library_answers(node.peer, answer)
        assert node.sent == [Ack(TERM, 4, 8.0, 6, False, True, None, 70)]
        node.receiver.mute()
        node.receiver.library_answers(node.peer, answer)
        assert len(node.sent) == 1

    def test_new_entries_are_passed_on(self) -> None:
        node = Node()
        assert node.receive(5, TERM, TERM, TERM) == []
        [given] = node.given
        assert (given["prevLogIdx"], given["prevLogTerm"]) == (5, TERM)
        assert [entry[1] for entry in given["entries"]] == [6, 7]

    def test_equal_ones_are_skipped_and_others_replace_what_differs(self) -> None:
        node = Node()
        node.receive(2, 5, 6, TERM, TERM, TERM)
        assert [entry[1] for entry in node.given[-1]["entries"]] == [6]
        node.receive(2, 5, TERM)
        assert (node.given[-1]["prevLogIdx"], [entry[1] for entry in node.given[-1]["entries"]]) == (2, [3])

    def test_a_resent_part_of_the_leaders_own_entries_keeps_the_rest(self) -> None:
        node = Node()
        assert node.receive(2, 5, 6) == []
        [given] = node.given
        assert (given["prevLogIdx"], given["entries"]) == (5, [])

    def test_a_tail_of_another_leader_is_neither_kept_for_good_nor_vouched_for(self) -> None:
        node = Node(Log(5, 5, 6, 6))
        assert node.receive(3, 6, commit=4) == [(4, False, True)]
        assert [message["commit_index"] for message in node.given] == [3]
        assert "entries" not in node.given[0]

    def test_a_heartbeat_at_the_end_is_compared(self) -> None:
        node = Node(Log(5, 5, 6, 6))
        assert node.receive(4, 6, commit=4) == []
        [given] = node.given
        assert (given["prevLogIdx"], given["entries"], given["commit_index"]) == (4, [], 4)

    @pytest.mark.parametrize("wrong", ["kind", "number"])
    def test_entries_that_no_leader_sends_stop_the_node(self, wrong: str) -> None:
        node = Node()
        numbers = (6, 8) if wrong == "number" else (6, 7)
        kind = b"\2" if wrong == "kind" else b"\1"
        entries = [(b"\0", numbers[0], TERM), (kind, numbers[1], TERM)]
        with pytest.raises(RaftViolated):
            node.receiver.append(node.peer, Append(TERM, 4, 8.0, 2, 5, TERM, entries))
        assert node.given == []

    def test_nothing_committed_is_cut(self) -> None:
        for commit, cut in ((3, True), (4, False)):
            node = Node(commit=commit)
            if cut:
                node.receive(3, 6, TERM + 1)
                assert [entry[1] for entry in node.given[-1]["entries"]] == [4]
            else:
                with pytest.raises(RaftViolated):
                    node.receive(3, 6, TERM + 1)
        behind = Node(commit=5)                 # committed to the end: what follows is cut nowhere
        behind.receive(5, TERM, TERM)
        assert [entry[1] for entry in behind.given[-1]["entries"]] == [6]
        ahead = Node(commit=9)                  # a commit index above the log
        ahead.receive(5, TERM, TERM)
        assert [entry[1] for entry in ahead.given[-1]["entries"]] == [6]

    def test_a_full_disk_takes_nothing_and_asks_again(self) -> None:
        node = Node()
        node.log.room = False
        assert node.receive(4, TERM, TERM, TERM, commit=5) == [(6, False, True)]
        assert "entries" not in node.given[0]
        assert node.given[0]["commit_index"] == 5
        node.sent.clear()
        assert node.receive(7, TERM, TERM) == [(6, True, False)]        # a gap
        node.sent.clear()
        node.log.segments.short = True
        assert node.receive(7, TERM, TERM) == [(0, False, False)]       # not again and again
        node.sent.clear()
        node.log.room = True
        node.receive(5, TERM, TERM)
        assert node.receive(7, TERM, TERM) == [(6, True, False)]
        node.sent.clear()
        node.log.room = False
        node.receive(5, TERM, TERM)
        node.sent.clear()
        node.taken = True
        node.receive(5, TERM, TERM)             # the lane had room
        node.taken = False
        assert node.receive(7, TERM, TERM) == [(6, True, False)]

    def test_an_old_message_without_entries_cuts_nothing_and_does_no_harm(self) -> None:
        node = Node(commit=4)
        assert node.receive(2, 5) == []
        assert node.given[-1]["prevLogIdx"] == 5

    def test_a_heartbeat_needs_no_room(self) -> None:
        node = Node()
        node.log.room = False
        assert node.receive(5, TERM) == []
        assert node.given[-1]["entries"] == []

    def test_behind_a_gap_it_asks_for_what_is_missing(self) -> None:
        node = Node()
        assert node.receive(6, TERM, TERM) == [(6, True, False)]
        assert [message["serialized"] for message in node.given] == [None]

    def test_a_conflict_is_stepped_over_by_terms(self) -> None:
        node = Node(Log(5, 5, 6, 6, 6), commit=1)
        assert node.receive(5, TERM) == [(3, True, False)]
        node = Node(Log(5, 5, 6, 6, 6), commit=3)
        assert node.receive(5, TERM) == [(4, True, False)]
        node = Node(Log(5, 5, 6, 6, 6), commit=4)
        assert node.receive(5, TERM) == [(5, True, False)]
        with pytest.raises(RaftViolated):
            Node(Log(5, 5, 6, 6, 6), commit=5).receive(5, TERM)

    def test_what_was_compacted_is_equal(self) -> None:
        node = Node(Log(6, TERM, first=10), commit=10)
        node.receive(8, 5, 5, 6, TERM, TERM)
        [given] = node.given
        assert (given["prevLogIdx"], [entry[1] for entry in given["entries"]]) == (11, [12])
        first = Node(Log(6, TERM, first=10), commit=9)
        first.receive(10, 6, TERM, TERM)
        assert [entry[1] for entry in first.given[-1]["entries"]] == [12]
        with pytest.raises(RaftViolated):
            Node(Log(6, TERM, first=10), commit=10).receive(10, 5, TERM)
