"""Each condition of sending and receiving a snapshot alone: when one begins, continues, ends and is used."""

from __future__ import annotations

import errno
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.pysyncobj_adapter import PeerNode
from sockpqd.cluster.raft.snapshot_transfer import SnapshotTransfers
from sockpqd.cluster.snapshots.snapshot_store import SnapshotDamaged
from sockpqd.cluster.storage.disk import SyncFailed
from sockpqd.cluster.storage.errors import RejoinNeeded, StorageError
from sockpqd.cluster.wire.messages import SnapshotChunk

TERM = 7
CHUNK = limits.SNAPSHOT_CHUNK_BYTES


class Source:
    """A snapshot to be sent."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.closed = False
        self._rest = size

    def read(self, length: int) -> bytes:
        data = bytes(min(length, self._rest))
        self._rest -= len(data)
        return data

    def close(self) -> None:
        self.closed = True


class Sink:
    """A snapshot that arrives, up to an entry of the last term."""

    def __init__(self, index: int, full: Callable[[], bool]) -> None:
        self.offset = 0
        self._full = full
        self.aborted = False
        self.error: Exception | None = None
        self._index = index

    def write(self, data: bytes) -> None:
        if self.error is not None:
            raise self.error
        if self._full():
            raise OSError(errno.ENOSPC, "full")
        self.offset += len(data)

    def finish(self) -> tuple[int, int]:
        return self._index, TERM - 1

    def abort(self) -> None:
        self.aborted = True


class Node:
    """The transfers of a node with the log 3..9 of this term, committed up to 5; and one peer."""

    def __init__(self) -> None:
        self.source: Source | None = Source(CHUNK)
        self.cannot_open: OSError | None = None
        self.leading = True
        self.buffered = 0
        self.sent: list[SnapshotChunk] = []
        self.given: list[dict[str, Any]] = []
        self.compacted = 0
        self.scarce = 0
        self.full = False
        self.sinks: list[Sink] = []
        self.index = 20                 # of the snapshot that arrives
        self.loads = True
        self.peer = Peer(PeerNode("p"))
        self.peer.up, self.peer.term = True, TERM
        self.peer.info = cast(Any, SimpleNamespace(full=False))
        self.journal = SimpleNamespace(
            first_index=3, last_index=9, term_at=lambda index: TERM if 3 <= index <= 9 else None,
            finish_sync=self._finish_sync)
        self.cannot_sync: OSError | None = None
        self.synced_before: list[int] = []      # how much the library had been given at each end of a sync
        self.replica = SimpleNamespace(term=TERM, commit_index=5, applied_index=5, compact=self._compact)
        self.context = SimpleNamespace(
            now=100.0, promise_ms=300, journal=self.journal, replica=self.replica, peers={"p": self.peer},
            leads=lambda: self.leading, send=lambda peer, message: self.sent.append(message), deliver=self._deliver,
            network=SimpleNamespace(buffered_bytes=lambda name: self.buffered),
        )
        self.store = SimpleNamespace(
            open_newest=self._open, begin_incoming=self._begin, expect=lambda sink: None, load_error="",
            lack_space=self._lack)
        self.covered = True             # what the peer has, when this node leads
        quorum = SimpleNamespace(covers=lambda peer: self.covered)
        self.transfers = SnapshotTransfers(cast(Any, self.context), cast(Any, self.store), cast(Any, quorum))

    def _open(self) -> Source | None:
        if self.cannot_open is not None:
            raise self.cannot_open
        return self.source

    def _finish_sync(self) -> None:
        if self.cannot_sync is not None:
            raise self.cannot_sync
        self.synced_before.append(len(self.given))

    def _compact(self) -> None:
        self.compacted += 1

    def _lack(self) -> None:
        self.scarce += 1

    def _begin(self, name: str) -> Sink:
        self.sinks.append(Sink(self.index, lambda: self.full))
        return self.sinks[-1]

    def _deliver(self, node: PeerNode, message: dict[str, Any]) -> None:
        self.given.append(message)
        if self.loads:
            self.journal.last_index = self.replica.applied_index = self.index

    def begin(self) -> bool:
        """Return whether one is being sent after this."""
        self.transfers.begin(self.peer)
        return self.peer.sending is not None

    def receive(
        self, offset: int, length: int = 10, *, last: bool = False, number: int = 1, covered: bool = False,
    ) -> int | None:
        chunk = SnapshotChunk(TERM, 4, 8.0, 20, number, offset, bytes(length), last, 300, 1234, covered)
        return self.transfers.receive_chunk(self.peer, chunk)


class Room:
    """The room of a node, which is not full any more once this many things are given up."""

    def __init__(self, node: Node, things: int) -> None:
        self.things = things
        self.helps = True
        self.state = 0          # bytes
        self.asked: list[int] = []
        self.missing: list[int] = []    # bytes, each time that it was to make way
        self.covered: list[bool] = []
        self._node = node
        node.transfers.room = self

    def state_bytes(self) -> int:
        return self.state

    def make_way(self, missing: int, *, covered: bool) -> bool:
        self.missing.append(missing)
        self.covered.append(covered)
        if not self.things:
            return False
        self.things -= 1
        self._node.full = self.things > 0
        return True

    def give_up_state(self, size: int) -> StorageError | None:
        self.asked.append(size)
        return RejoinNeeded() if self.helps else None


@pytest.fixture
def node() -> Node:
    return Node()


class TestSending:
    def test_only_one_is_sent_to_a_peer(self, node: Node) -> None:
        assert node.begin()
        first = node.peer.sending
        assert node.begin()
        assert node.peer.sending is first

    def test_none_that_is_still_written(self, node: Node) -> None:
        node.source = None
        assert not node.begin()

    def test_one_that_cannot_be_opened_is_tried_again_later(self, node: Node) -> None:
        node.cannot_open = OSError(errno.EMFILE, "too many files")
        assert not node.begin()
        node.cannot_open = None
        assert not node.begin()
        node.context.now += limits.SNAPSHOT_REFUSED_S / 2
        assert not node.begin()
        node.context.now += limits.SNAPSHOT_REFUSED_S / 2
        assert node.begin()

    def test_but_not_on_a_disk_that_fails(self, node: Node) -> None:
        node.cannot_open = OSError(errno.EIO, "broken")
        with pytest.raises(OSError, match="broken"):
            node.begin()

    def test_as_much_as_the_connection_takes(self, node: Node) -> None:
        node.source = Source(3 * limits.SNAPSHOT_WINDOW_BYTES)
        node.begin()
        node.transfers.send_chunks()
        assert sum(len(chunk.data) for chunk in node.sent) == limits.SNAPSHOT_WINDOW_BYTES
        assert not any(chunk.last for chunk in node.sent)
        node.buffered, node.sent = limits.SNAPSHOT_WINDOW_BYTES, []
        node.transfers.send_chunks()
        assert node.sent == []
        node.buffered -= 1
        node.transfers.send_chunks()
        assert [chunk.offset for chunk in node.sent] == [limits.SNAPSHOT_WINDOW_BYTES]

    @pytest.mark.parametrize("size", [0, 1, CHUNK, CHUNK + 1, 2 * CHUNK])
    def test_the_last_chunk_says_so_and_nothing_follows_it(self, size: int, node: Node) -> None:
        node.source = Source(size)
        node.begin()
        node.transfers.send_chunks()
        node.transfers.send_chunks()
        assert [chunk.last for chunk in node.sent] == [False] * (max(-(-size // CHUNK), 1) - 1) + [True]
        assert sum(len(chunk.data) for chunk in node.sent) == size
        assert {chunk.size for chunk in node.sent} == {size}

    @pytest.mark.parametrize("covered", [True, False])
    def test_each_chunk_says_whether_the_others_have_all_that_the_peer_has(self, covered: bool, node: Node) -> None:
        node.covered = covered
        node.begin()
        node.transfers.send_chunks()
        assert [chunk.covered for chunk in node.sent] == [covered]

    def test_one_that_is_not_answered_in_time_is_given_up(self, node: Node) -> None:
        node.begin()
        node.transfers.send_chunks()
        node.context.now += limits.SNAPSHOT_ANSWER_S
        node.transfers.send_chunks()
        assert node.peer.sending is not None
        node.context.now += 0.1
        node.transfers.send_chunks()
        assert node.peer.sending is None
        assert node.source is not None
        assert node.source.closed

    @pytest.mark.parametrize("what", ["no leader", "another term"])
    def test_it_ends_with_the_leadership(self, what: str, node: Node) -> None:
        node.begin()
        node.leading = what != "no leader"
        node.peer.term -= what == "another term"
        node.transfers.send_chunks()
        assert (node.peer.sending, node.sent) == (None, [])

    def test_with_its_answer(self, node: Node) -> None:
        node.begin()
        number = cast(Any, node.peer.sending).number
        node.transfers.finished(node.peer, number + 1, accepted=True)
        assert node.peer.sending is not None
        node.transfers.finished(node.peer, number, accepted=True)
        assert node.peer.sending is None
        node.transfers.send_chunks()
        assert (node.sent, node.compacted) == ([], 0)
        assert node.begin()

    def test_an_answer_without_a_transfer_is_late(self, node: Node) -> None:
        node.transfers.finished(node.peer, 0, accepted=False)
        assert node.compacted == 0

    @pytest.mark.parametrize("said", ["nothing", "usable", "full"])
    def test_one_that_is_refused_is_written_once_more_unless_it_has_no_room(self, said: str, node: Node) -> None:
        node.begin()
        node.peer.info = None if said == "nothing" else cast(Any, SimpleNamespace(full=said == "full"))
        node.transfers.finished(node.peer, cast(Any, node.peer.sending).number, accepted=False)
        assert node.compacted == (said != "full")
        assert not node.begin()
        node.context.now += limits.SNAPSHOT_REFUSED_S
        assert node.begin()

    @pytest.mark.parametrize(("state", "busy", "written"), [
        (CHUNK // 2 - 1, False, 1), (CHUNK // 2, False, 0), (CHUNK // 2 - 1, True, 0),
    ])
    def test_a_smaller_one_is_written_for_a_peer_without_room(
        self, state: int, busy: bool, written: int, node: Node,
    ) -> None:
        room = Room(node, things=0)
        room.state, node.store.busy, node.store.whole_for_peer = state, busy, False
        node.begin()
        node.peer.info = cast(Any, SimpleNamespace(full=True))
        node.transfers.finished(node.peer, cast(Any, node.peer.sending).number, accepted=False)
        assert (node.compacted, node.store.whole_for_peer) == (written, bool(written))

    def test_both_directions_end_with_the_connection(self, node: Node) -> None:
        node.transfers.connection_lost(node.peer)
        node.begin()
        node.receive(0)
        node.transfers.connection_lost(node.peer)
        assert (node.peer.sending, node.peer.receiving) == (None, None)
        assert node.sinks[0].aborted


class TestReceiving:
    def test_it_is_used_with_the_last_chunk(self, node: Node) -> None:
        assert node.receive(0) is None
        assert node.receive(10) is None
        assert node.given == []
        assert node.receive(20, last=True) == 20
        assert (len(node.given), node.peer.receiving) == (1, None)
        assert not node.sinks[0].aborted

    def test_a_chunk_that_does_not_follow_is_dropped(self, node: Node) -> None:
        assert node.receive(10, last=True) is None
        node.receive(0)
        assert node.receive(20, last=True) is None
        assert node.receive(10, last=True, number=2) is None
        assert node.receive(10, last=True) == 20

    def test_another_start_gives_the_first_one_up(self, node: Node) -> None:
        node.receive(0)
        node.receive(0, number=2)
        assert [sink.aborted for sink in node.sinks] == [True, False]
        assert node.receive(10, last=True) is None

    @pytest.mark.parametrize(("index", "answer"), [(2, 3), (4, 4), (5, 5)])
    def test_what_is_committed_here_is_not_replaced(self, index: int, answer: int, node: Node) -> None:
        node.index = index
        assert node.receive(0, last=True) == answer
        assert (node.given, node.sinks[0].aborted) == ([], True)

    @pytest.mark.parametrize(("index", "of", "kept"), [(6, TERM - 1, True), (6, TERM, False)])
    def test_nor_is_a_log_that_has_its_last_entry(self, index: int, of: int, kept: bool, node: Node) -> None:
        node.index = index
        node.journal.term_at = {index: of}.get
        assert node.receive(0, last=True) == index
        assert (node.given == [], node.sinks[0].aborted) == (kept, kept)

    @pytest.mark.parametrize(("last", "applied"), [(20, 5), (9, 20), (9, 5)])
    def test_one_that_could_not_be_loaded_counts_for_nothing(self, last: int, applied: int, node: Node) -> None:
        node.loads = False
        node.journal.last_index, node.replica.applied_index = last, applied
        assert node.receive(0, last=True) == 0

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
    def test_without_room_it_is_given_up_and_the_store_knows(self, number: int, node: Node) -> None:
        node.receive(0)
        node.sinks[0].error = OSError(number, "full")
        assert node.receive(10) == 0
        assert (node.sinks[0].aborted, node.peer.receiving, node.scarce) == (True, None, 1)

    @pytest.mark.parametrize("offset", [0, 10])
    def test_without_room_others_make_way_until_there_is(self, offset: int, node: Node) -> None:
        room = Room(node, things=3)
        if offset:
            node.receive(0)
        node.full = True
        assert node.receive(offset, last=True) == 20
        assert (room.things, node.scarce) == (0, 0)
        assert room.missing == [1234 - offset] * 3          # of a snapshot of 1,234 bytes
        assert [sink.aborted for sink in node.sinks] == [True] * (len(node.sinks) - 1) + [False]

    @pytest.mark.parametrize("covered", [True, False])
    def test_the_room_knows_whether_the_others_have_all(self, covered: bool, node: Node) -> None:
        room = Room(node, things=1)
        node.full = True
        node.receive(0, covered=covered)
        assert room.covered == [covered]

    def test_nothing_makes_way_for_lack_of_descriptors_or_a_failed_sync(self, node: Node) -> None:
        room = Room(node, things=3)
        for error in (OSError(errno.EMFILE, "too many files"), SyncFailed(errno.ENOSPC, "full")):
            node.receive(0)
            node.sinks[-1].error = error
            assert node.receive(10) == 0
        assert room.things == 3

    def test_what_an_earlier_leader_began_to_send_is_given_up(self, node: Node) -> None:
        other = Peer(PeerNode("q"))
        node.context.peers["q"] = other
        node.receive(0)
        node.transfers.receive_chunk(other, SnapshotChunk(TERM + 1, 1, 9.0, 20, 1, 0, b"new", False, 300))
        assert node.sinks[0].aborted
        assert (node.peer.receiving, other.receiving is None) == (None, False)

    def test_its_own_state_is_given_up_when_that_was_so_for_a_while(self, node: Node) -> None:
        room = Room(node, things=0)
        node.full = True
        assert node.receive(0, covered=True) == 0
        node.context.now += limits.NO_ROOM_FOR_STATE_S - 0.1
        assert node.receive(0, covered=True) == 0
        assert room.asked == []
        node.context.now += 0.2
        assert node.receive(0, covered=False) == 0              # the others do not have all that it has
        assert room.asked == []
        room.helps = False
        assert node.receive(0, covered=True) == 0               # it may not, or it would not help
        room.helps = True
        with pytest.raises(RejoinNeeded):
            node.receive(0, covered=True)
        assert room.asked == [1234, 1234]
        assert all(sink.aborted for sink in node.sinks)         # so that there is room to note it

    @pytest.mark.parametrize("why", ["success", "long ago", "descriptors", "entries came", "more acknowledged"])
    def test_but_not_for_what_was_long_ago_or_is_no_lack_of_space(self, why: str, node: Node) -> None:
        room = Room(node, things=0)
        node.full = True
        assert node.receive(0, covered=True) == 0
        node.context.now += limits.NO_ROOM_FOR_STATE_S + 1
        if why == "success":
            node.full = False
            assert node.receive(0, covered=True, last=True) == 20
            node.index = 40
            node.full = True
        elif why == "entries came":
            node.replica.applied_index += 1
        elif why == "more acknowledged":        # than the leader knew to be committed when it said so
            node.journal.last_index = 21
        elif why == "long ago":
            node.context.now += limits.NO_ROOM_KNOWN_FOR_S
        else:
            node.full = False
            node.receive(0, covered=True)
            node.sinks[-1].error = OSError(errno.EMFILE, "too many files")
        assert node.receive(10 if why == "descriptors" else 0, covered=True) == 0
        assert room.asked == []

    def test_a_disk_that_fails_ends_the_node(self, node: Node) -> None:
        node.receive(0)
        node.sinks[0].error = OSError(errno.EIO, "broken")
        with pytest.raises(OSError, match="broken"):
            node.receive(10)

    def test_a_damaged_one_is_given_up(self, node: Node) -> None:
        node.receive(0)
        node.sinks[0].error = SnapshotDamaged("bad")
        assert node.receive(10) == 0
        assert (node.sinks[0].aborted, node.peer.receiving, node.scarce) == (True, None, 0)


class TestTakingOver:
    def test_the_sync_in_the_background_ends_before_the_log_is_cleared(self, node: Node) -> None:
        """Acknowledgements wait for its end, and must not leave when their entries are gone."""
        assert node.receive(0, last=True) == node.index
        assert node.synced_before == [0]
        assert len(node.given) == 1

    def test_nothing_is_taken_over_when_it_fails(self, node: Node) -> None:
        node.cannot_sync = OSError("the disk failed")
        with pytest.raises(OSError, match="the disk failed"):
            node.receive(0, last=True)
        assert not node.given
