"""Which ends of a node a restart can cure.

A process that starts again has new memory and descriptors, reads what is really on its disk, and may have been given
room, or a program without the bug. What is wrong with the data themselves, or between this node and the others, is the
same after every start: somebody must look first, and going on meanwhile could break a promise.
"""

from __future__ import annotations

from cluster.errors import EntryTooNew, LibraryMismatch, RaftViolated
from cluster.raft.replica_check import Diverged
from cluster.storage.errors import StorageDamaged, StorageTooNew

_LASTING = (StorageDamaged, StorageTooNew, EntryTooNew, RaftViolated, Diverged, LibraryMismatch)


def restart_cures(error: BaseException) -> bool:
    """Is it worth a try to start the node again, after it ended with this error?"""
    return not isinstance(error, _LASTING)
