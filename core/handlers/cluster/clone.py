"""Handlers of CLONE: a snapshot arrives in chunks through the log and replaces all jobs (spec/cluster 8.6)."""

from __future__ import annotations

from sockpqd.core import limits
from sockpqd.core.handlers.cost import BASE_BYTES, JOB, Cost
from sockpqd.core.ops.cluster import CloneChunk
from sockpqd.core.ops.events import GAP
from sockpqd.core.ops.replies import ACCEPTED, INVALID_SNAPSHOT, NOT_FOUND, NOT_YET, Reply
from sockpqd.core.snapshot.frames import LevelError, SnapshotError
from sockpqd.core.snapshot.upload import PendingClone, adopt
from sockpqd.core.state import CloneUpload, State

SMALL_JOB_BYTES = 100           # of a snapshot


def chunk(state: State, operation: CloneChunk, seed: int) -> Reply:
    """Add the next bytes of the snapshot; the last ones replace the jobs of this cluster."""
    if operation.total_bytes is not None:
        state.drop_clone()
        state.clone = PendingClone(operation.clone, operation.total_bytes, state.pager)
    pending = state.clone
    if pending is None or pending.clone != operation.clone:
        return INVALID_SNAPSHOT
    try:
        if operation.data:
            pending.add(operation.data, state.level)
        if operation.last:
            _replace(state, pending, pending.finish())
    except LevelError:
        state.drop_clone()
        return NOT_YET
    except SnapshotError:
        state.drop_clone()
        return INVALID_SNAPSHOT
    return ACCEPTED


def chunk_cost(operation: CloneChunk) -> Cost:
    """Return the bytes and work of a CloneChunk: as many puts as there can be small jobs in it.

    The number of jobs that the last one changes is unknown, so it gets an entry of its own.
    """
    size = len(operation.data)
    work = JOB * (1 + size // SMALL_JOB_BYTES)
    return BASE_BYTES + size, limits.OPERATION_WORK_MAX if operation.last else min(work, limits.OPERATION_WORK_MAX)


def _replace(state: State, pending: CloneUpload, other: State) -> None:
    """Replace the jobs with the jobs of the snapshot."""
    for seq in list(state.watches):
        state.tell_end(seq, NOT_FOUND)
    adopt(state, other)
    pending.chunks.drop()
    state.clone = None
    state.effects.restored = True
    seq = state.events.seq + 1
    state.events.tell(GAP, "", seq, seq)
    for name, settings in state.queues.settings.items():
        state.watch(name, settings)         # jobs that were RUNNING are READY again
