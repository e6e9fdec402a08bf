"""What can go wrong in a cluster node.

    ClusterError
    ├── FailStop            this node must stop: going on could break a promise
    │   ├── EntryTooNew     the log holds what only a newer version can read
    │   ├── ApplyFailed     an exception inside the machine: a bug; skipping the entry would make replicas differ
    │   ├── OutOfMemory     an entry could not be executed for want of memory: it is when the node is started again
    │   └── RaftViolated    a peer asks for something Raft forbids (such as cutting committed entries)
    └── LibraryMismatch     the installed pysyncobj is not the version the transport is written against

Damage of the disk has its own errors (errors.py); they stop the node as well. Which of all these ends a restart
can cure is said in exit_codes.py.
"""


class ClusterError(Exception):
    """Base of the errors above."""


class FailStop(ClusterError):  # noqa: N818  (the field's word for it)
    """This node must stop."""


class EntryTooNew(FailStop):
    """The log holds an entry of a format or with an operation that this version does not know."""


class ApplyFailed(FailStop):
    """An operation raised inside the machine."""


class OutOfMemory(FailStop):
    """The system gave no memory in the middle of an entry, which is committed and will be executed after a start."""


class RaftViolated(FailStop):
    """A peer's message contradicts what is committed here."""


class LibraryMismatch(ClusterError):  # noqa: N818
    """The installed pysyncobj differs from the pinned one."""
