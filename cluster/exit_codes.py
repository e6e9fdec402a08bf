"""Exit codes, which distinguish failures of a node that a restart can cure from others.

A restarted process has fresh memory and descriptors, reads what is really on its disk, and may find more room or be a
fixed version of the program. Damaged data, or a disagreement with the other nodes, is the same after every start: an
operator must look first, and running until then could break a promise.
"""

from __future__ import annotations

from sockpqd.cluster.errors import EntryTooNew, EntryTooOld, LibraryMismatch, RaftViolated, RejoinFailed
from sockpqd.cluster.raft.replica_check import Diverged
from sockpqd.cluster.storage.errors import StorageDamaged, StorageTooNew

_LASTING = (
    StorageDamaged, StorageTooNew, EntryTooNew, EntryTooOld, RaftViolated, RejoinFailed, Diverged, LibraryMismatch,
)


def restart_cures(error: BaseException) -> bool:
    """Return whether it is worth restarting a node that ended with this error."""
    return not isinstance(error, _LASTING)
