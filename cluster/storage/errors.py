"""The errors of a node's storage.

    StorageError
    ├── StorageDamaged      written bytes can no longer be trusted: the node must neither serve nor vote
    │   ├── JournalDamaged
    │   └── SnapshotDamaged
    ├── StorageTooNew       written by a newer version of this program
    │   ├── JournalTooNew
    │   └── SnapshotTooNew
    ├── RejoinNeeded        the next start sets files aside or deletes them, and the node rejoins without them
    ├── StorageInUse        another process has the directory open
    └── NoRoom              no space or no descriptor: nothing was written, and the call can be repeated

Failures of the disk itself (EIO) are raised as OSError.
"""


# Ends the messages about damage: what the operator should do.
START_EMPTY = (
    "This node must not serve or vote with it. Stop it, move its data directory away and start it again with an empty"
    " one: the other nodes will bring it up to date."
)

# Ends the messages about damage in a part of the journal that is kept for copies in other regions.
ONLY_FOR_COPIES = (
    "Only copies in other regions need what is there: this node continues, and a copy gets it from another node, or a"
    " snapshot. Check the disk and memory of this node: stored data was corrupted."
)

# Ends the messages about a newer format, in this node's own files or in a snapshot from another node.
START_NEWER = "Start the newer version again, or empty this node's data directory."
START_NEWER_HERE = "Start the newer version on this node."

# Ends the messages about a data directory that another process has open.
IN_USE = "is in use by another process: end that one first, or give this node a data directory of its own"


class StorageError(Exception):
    """Base of the errors above. The message names the file and says what the operator can do."""


class StorageDamaged(StorageError):
    """Written bytes are missing or changed."""


class JournalDamaged(StorageDamaged):
    """The journal has lost or changed something that may have been acknowledged."""


class SnapshotDamaged(StorageDamaged):
    """No snapshot can be trusted, or none matches the journal."""


class RejoinNeeded(StorageError):
    """The node must be started again to come back without its files: they are damaged, or too large for its disk."""


class StorageTooNew(StorageError):
    """A file has a newer format than this program knows; it was neither used nor changed."""


class JournalTooNew(StorageTooNew):
    """A journal of a newer format."""


class SnapshotTooNew(StorageTooNew):
    """A snapshot of a newer format, or one that contains a state of a newer format."""


class StorageInUse(StorageError):
    """Another process uses the data directory; two must never write to it."""


class NoRoom(StorageError):
    """The disk is full or the process has no descriptors left. Nothing was written; it may work later."""
