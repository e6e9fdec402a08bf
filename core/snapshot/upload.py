"""A snapshot that arrives in chunks through the log: of a CLONE (spec/cluster 8.6), or of the origin of a replica.

The chunks are decoded as they arrive, so that little work is left after the last one. They are also stored: a node
that restores a snapshot taken in the middle must be able to continue.
"""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.core.levels import FIRST_LEVEL
from sockpqd.core.ops.jobs import Policy
from sockpqd.core.pages.clone_buffer import CloneBuffer
from sockpqd.core.pages.pager import Pager
from sockpqd.core.rules.complete import undo_hand_out
from sockpqd.core.snapshot.frames import SnapshotError
from sockpqd.core.snapshot.read import MirrorFrames, SnapshotReader
from sockpqd.core.state import Arriving, Collected, MirrorState, State


class PendingClone:
    """The chunks of the upload `clone`, which will have `total_bytes` in total.

    It must be dropped, unless its state was adopted.
    """

    __slots__ = ("_pager", "_reader", "chunks", "clone", "received_bytes", "total_bytes")

    def __init__(self, clone: int, total_bytes: int, beside: Pager | None, *, foreign: bool = True) -> None:
        """`beside`: the pager of the current state; the upload's jobs get a memory budget of the same size.

        `foreign`: the bytes come from a client.
        """
        self.clone = clone
        self.total_bytes = total_bytes
        self.chunks = CloneBuffer(None if beside is None or beside.resident else beside.pages)
        self._pager = None if beside is None else beside.another()
        self.received_bytes = 0
        self._reader = SnapshotReader(FIRST_LEVEL, foreign=foreign, pager=self._pager)

    def add(self, data: bytes, level: int) -> None:
        """Add the next chunk, for a cluster of this feature level.

        Raises LevelError if the state needs a higher level, so that all nodes give the same reply whatever their own
        level, and SnapshotError if the bytes so far cannot become a snapshot of the announced size.
        """
        self._feed(data, level)
        self.chunks.add(data)

    def resume(self, chunks: CloneBuffer, level: int) -> None:
        """Add chunks that were received before a restart. Raises as `add` does."""
        self.chunks.drop()
        self.chunks = chunks
        for data in chunks:
            self._feed(data, level)

    def _feed(self, data: bytes, level: int) -> None:
        self.received_bytes += len(data)
        if self.received_bytes > self.total_bytes:
            raise SnapshotError("more bytes than announced")
        self._reader.level = level
        self._reader.feed(data)

    def finish(self) -> State:
        """Return the state in the snapshot. Raises SnapshotError if it is incomplete or invalid."""
        if self.received_bytes != self.total_bytes:
            raise SnapshotError("fewer bytes than announced")
        return self._reader.finish()

    def drop(self) -> None:
        """Abandon the upload and release its pages."""
        self.chunks.drop()
        if self._pager is not None:
            self._pager.pages.drop()


class PendingMirror(PendingClone):
    """The chunks of a snapshot of the origin, which may have been taken in the middle of a CLONE."""

    __slots__ = ()

    def __init__(self, total_bytes: int, beside: Pager | None) -> None:
        """`beside`: the pager of the mirror."""
        super().__init__(0, total_bytes, beside, foreign=False)

    def finish(self) -> State:
        """Return the state in the snapshot. Raises SnapshotError if it is incomplete or invalid."""
        super().finish()
        return _completed(self._reader, self._pager)


def restore(chunks: Iterable[bytes], level: int, pager: Pager | None = None) -> State:
    """Return the state in a whole snapshot, with any CLONE in progress. Its level must be at most `level`.

    `pager`: an empty one for the new state, or for the mirror of a replica. Raises SnapshotError.
    """
    reader = SnapshotReader(level, pager=pager)
    for chunk in chunks:
        reader.feed(chunk)
    return _completed(reader, pager)


def _completed(reader: SnapshotReader, pager: Pager | None) -> State:
    """Return the state that was read, with what was arriving in it."""
    state = reader.finish()
    if reader.pending is not None:
        head, received = reader.pending
        state.clone = PendingClone(head.clone, head.total_bytes, pager)
        state.clone.resume(received, state.level)
    if reader.mirror is not None:
        state.keep_in(None)
        state.mirror = _restored_mirror(reader.mirror, state.level, pager)
    return state


def _restored_mirror(found: MirrorFrames, level: int, pager: Pager | None) -> MirrorState:
    """Return the mirror in a snapshot of a replica of this feature level."""
    state, table = _completed(found.reader, pager), found.table
    mirror = MirrorState(state, reached=state.index)
    if table.part is not None:
        mirror.part = Collected(table.part, found.part)
    if table.arriving is not None:
        index, chain, total_bytes = table.arriving
        upload = PendingMirror(total_bytes, pager)
        upload.resume(found.chunks, level)
        mirror.arriving = Arriving(index, chain, upload)
    return mirror


def adopt(state: State, other: State) -> None:
    """Replace the jobs of `state` by the jobs of a restored snapshot (CLONE, spec/cluster 8.6).

    Pulses, the settings of queues and the retained keys come with the jobs; queues are no longer bound to sessions. The
    cluster keeps its own index, term, clock, members, server ids, cluster id, settings, map of clusters, feature level,
    online or offline state, users, and sessions with those bound jobs that still exist. Counters only grow. A running
    job of another cluster whose id may also have been assigned here goes back to its old place, so that it cannot be
    mistaken for the local one.
    """
    if other.cluster_id is None or other.cluster_id != state.cluster_id:
        issued = [number for number in other.in_order() if number < state.next_id]
        for number in issued:
            job = other.stop(number, charged=False)
            assert job is not None
            undo_hand_out(other, job)
    state.sessions.rebind(other.running)
    state.sessions.next_session = max(state.sessions.next_session, other.sessions.next_session)
    for name in [name for names in other.queues.bound.values() for name in names]:
        other.queues.unbind(name)
    for queue in other.queues.expiring.values():
        queue.used_ms = state.clock_ms
    other.pulses.adopt(state.pulses, state.clock_ms)
    state.pulses = other.pulses
    state.queues = other.queues
    state.numbers = other.numbers
    state.records = other.records
    state.records.limit(state.settings.retained_bytes)
    if state.pager is not None and other.pager is not None:
        other.pager.pages.replace(state.pager.pages)
        state.keep_in(other.pager)
    state.topics = other.topics
    state.running = other.running
    state.leases = other.leases
    state.delays = other.delays
    state.fair, state.groups = other.fair, other.groups
    if state.fair is not None:
        state.fair.now_ms = state.clock_ms
    if state.settings.policy is Policy.FAIR:
        state.use_fair()
    state.ttls = other.ttls
    state.dead = other.dead
    state.retained_keys = other.retained_keys
    state.errors = other.errors
    state.remembered_keys = other.remembered_keys
    other.items.next_item = max(state.items.next_item, other.items.next_item)
    state.items = other.items
    state.next_id = max(state.next_id, other.next_id)
    state.next_seq = max(state.next_seq, other.next_seq)
    state.seqs_since_ms = other.seqs_since_ms
