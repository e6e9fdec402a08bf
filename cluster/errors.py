"""The errors of a cluster node.

    ClusterError
    ├── FailStop            this node must stop: going on could break a promise
    │   ├── EntryTooNew     the log holds an entry that only a newer version can read
    │   ├── EntryTooOld     the log holds an entry that only 1.0.0rc1 can read
    │   ├── ApplyFailed     an exception inside the machine: a bug; skipping the entry would make replicas differ
    │   ├── OutOfMemory     no memory to execute an entry; it is executed when the node is started again
    │   ├── RejoinFailed    it rejoins without its damaged files, but no majority of the others serves
    │   └── RaftViolated    a peer asks for something Raft forbids (such as cutting committed entries)
    └── LibraryMismatch     the installed pysyncobj is not the version the adapter is written against

A damaged disk has its own errors (storage/errors.py), which stop the node as well. exit_codes.py says which of these
a restart can cure.
"""


class ClusterError(Exception):
    """Base of the errors above."""


class FailStop(ClusterError):
    """This node must stop, because its state is not reliable."""


class EntryTooNew(FailStop):
    """The log holds an entry whose format or operation this version does not know."""


class EntryTooOld(FailStop):
    """The log holds an entry of 1.0.0rc1, whose operations this version does not know."""


class ApplyFailed(FailStop):
    """An operation raised inside the machine."""


class OutOfMemory(FailStop):
    """Memory ran out while a committed entry was executed; it will be executed after a restart."""


class RejoinFailed(FailStop):
    """The others cannot bring this node up to date; its damaged files may be needed."""


class RaftViolated(FailStop):
    """A peer's message contradicts what is committed here."""


class LibraryMismatch(ClusterError):
    """The installed pysyncobj differs from the pinned one."""
