"""Handlers of what a replica takes in from its origin: entries, large ones in parts, and snapshots (spec/region 1).

They only queue entries: Machine.apply executes them on the mirror after the operations of the replica's own entry.
Entries that the mirror has executed are skipped, and none is executed after a gap.
"""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, ID_BYTES, JOB, NAME_BYTES, Cost
from sockpqd.core.ops.cluster import MirrorChunk, MirrorEntries, MirrorFrame
from sockpqd.core.ops.replies import INVALID_SNAPSHOT, NOT_YET, Mirrored, ReplicaRefused, Reply
from sockpqd.core.snapshot.frames import LevelError, SnapshotError
from sockpqd.core.snapshot.upload import PendingMirror
from sockpqd.core.state import Arriving, Collected, MirrorState, State, ToMirror

NOT_EMPTY = ReplicaRefused("not empty")
PROMOTED = ReplicaRefused("promoted")


def entries(state: State, operation: MirrorEntries, seed: int) -> Reply:
    """Execute the frames that the mirror has not executed, unless others before them, or parts of one, are missing."""
    mirror = _mirror_of(state)
    if isinstance(mirror, ReplicaRefused):
        return mirror
    for frame in operation.frames:
        if operation.after <= mirror.reached < frame.index:
            data = _whole(mirror, operation, frame)
            if data is not None:
                mirror.steps.append(ToMirror(frame.index, data))
                mirror.reached = frame.index
    return Mirrored(mirror.reached)


def _whole(mirror: MirrorState, operation: MirrorEntries, frame: MirrorFrame) -> bytes | None:
    """Return the bytes of a frame that has come completely; keep those of one that comes in parts."""
    if operation.last and not operation.offset:
        return frame.data
    collected, mirror.part = mirror.part, None
    if not operation.offset:
        collected = Collected(frame.index, bytearray())
    elif collected is None or (collected.number, len(collected.data)) != (frame.index, operation.offset):
        return None
    collected.data += frame.data
    if operation.last:
        return bytes(collected.data)
    mirror.part = collected
    return None


def entries_cost(operation: MirrorEntries) -> Cost:
    """Return the bytes and work of a MirrorEntries: the work of its frames is unknown, so it gets its own entry."""
    size = sum(ID_BYTES + NAME_BYTES + len(frame.data) for frame in operation.frames)
    return BASE_BYTES + size, limits.OPERATION_WORK_MAX if operation.last else JOB


def chunk(state: State, operation: MirrorChunk, seed: int) -> Reply:
    """Add bytes of the snapshot, which is the mirror when all have come."""
    if operation.total_bytes is not None:
        return _begin(state, operation, operation.total_bytes)
    mirror = state.mirror
    if mirror is None:
        return PROMOTED if state.promoted else NOT_EMPTY
    arriving = mirror.arriving
    if arriving is None or (arriving.index, arriving.upload.received_bytes) != (operation.index, operation.offset):
        return Mirrored(mirror.reached)
    upload = arriving.upload
    try:
        upload.add(operation.data, state.level)
        if upload.received_bytes < upload.total_bytes:
            return Mirrored(mirror.reached)
        other = upload.finish()
        if other.index != arriving.index:
            raise SnapshotError("taken at another index than announced")
    except LevelError:
        _drop_arriving(mirror)
        return NOT_YET
    except SnapshotError:
        _drop_arriving(mirror)
        return INVALID_SNAPSHOT
    upload.chunks.drop()
    mirror.arriving = mirror.part = None
    _replace(mirror, other)
    mirror.steps.append(ToMirror(arriving.index, b"", arriving.hash))
    state.effects.restored = True
    return Mirrored(mirror.reached)


def chunk_cost(operation: MirrorChunk) -> Cost:
    """Return the bytes and work of a MirrorChunk, whose jobs are decoded."""
    return BASE_BYTES + len(operation.data), limits.OPERATION_WORK_MAX


def _begin(state: State, operation: MirrorChunk, total_bytes: int) -> Reply:
    """Begin to receive a snapshot; an earlier one that is incomplete is discarded."""
    mirror = _mirror_of(state)
    if isinstance(mirror, ReplicaRefused):
        return mirror
    _drop_arriving(mirror)
    if operation.index > mirror.reached:
        upload = PendingMirror(total_bytes, mirror.state.pager)
        mirror.arriving = Arriving(operation.index, operation.hash, upload)
    return Mirrored(mirror.reached)


def _replace(mirror: MirrorState, other: State) -> None:
    """Make this state the mirror, and release the pages of the one before it."""
    before = mirror.state
    before.drop_clone()
    if before.pager is not None and other.pager is not None:
        other.pager.pages.replace(before.pager.pages)
    mirror.state, mirror.reached = other, other.index


def _drop_arriving(mirror: MirrorState) -> None:
    if mirror.arriving is not None:
        mirror.arriving.upload.drop()
        mirror.arriving = None


def _mirror_of(state: State) -> MirrorState | ReplicaRefused:
    """Return the mirror of this cluster, which the first operation on it creates, with the jobs' pages."""
    if state.mirror is None:
        if state.promoted:
            return PROMOTED
        if not _is_empty(state):
            return NOT_EMPTY
        state.mirror = MirrorState(State())
        state.mirror.state.keep_in(state.pager)
        state.keep_in(None)
    return state.mirror


def _is_empty(state: State) -> bool:
    """Return whether the cluster still contains nothing from any client or operator, and may serve."""
    queues = state.queues
    return not (
        queues.by_name or queues.idle or queues.settings or state.running or state.sessions.by_number
        or state.users or state.topics.by_name or state.pulses.by_name or state.groups.by_name
        or state.cluster_map or len(state.records) or state.fenced is not None
    )
