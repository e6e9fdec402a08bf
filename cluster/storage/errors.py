"""What can be wrong with the files of a node.

    StorageError
    ├── StorageDamaged      bytes that were written once can no longer be trusted: the node must not serve nor vote
    │   ├── JournalDamaged
    │   └── SnapshotDamaged
    ├── StorageTooNew       written by a newer version of this program
    │   ├── JournalTooNew
    │   └── SnapshotTooNew
    ├── StorageInUse        another process has the directory open
    └── NoRoom              no space or no descriptor: nothing was written, and it can be tried again

Failures of the disk itself (EIO) are OSErrors and pass through as they are.
"""


# What an operator can do about damage; ends the messages.
START_EMPTY = (
    "This node must not serve or vote with it. Stop it, move its data directory away and start it again with an empty"
    " one: the other nodes bring it up to date."
)

# The same for a newer format, of this node's own files and of what another node sends.
START_NEWER = "Start the newer version again, or empty this node's data directory."
START_NEWER_HERE = "Start the newer version on this node."


class StorageError(Exception):
    """Base of the errors above. The message names the file and says what an operator can do."""


class StorageDamaged(StorageError):  # noqa: N818  (the field's word for it)
    """Written bytes are missing or changed."""


class JournalDamaged(StorageDamaged):
    """The journal has lost or changed something that may have been promised to somebody."""


class SnapshotDamaged(StorageDamaged):
    """No snapshot can be trusted, or none fits the journal."""


class StorageTooNew(StorageError):  # noqa: N818
    """The format number in a file is above the one this program knows. Nothing of the file was used or changed."""


class JournalTooNew(StorageTooNew):
    """A journal of a newer format."""


class SnapshotTooNew(StorageTooNew):
    """A snapshot of a newer format, or with a state of a newer format in it."""


class StorageInUse(StorageError):  # noqa: N818
    """Two processes must never write one data directory."""


class NoRoom(StorageError):  # noqa: N818
    """The disk is full, or the process has no descriptor. Nothing was written; later it may work."""
