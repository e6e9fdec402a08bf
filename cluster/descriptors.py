"""How many file descriptors a node needs for itself: whatever else the process opens must leave it so many."""

from __future__ import annotations

# Segments of the journal that are open at once: 32 MiB each, so that is a journal of 2 GiB. A longer one makes do.
JOURNAL_FILES = 64
HELD_FILES = 8          # descriptors that the journal has at hand for its next segments; the snapshots have as many
# Standard streams, event loop, locks, snapshots and their directories, the pipe to a child, and what the C library and
# the interpreter open for a moment.
OTHER_FILES = 32
# Of each other node: the connection it dialed and the one it was dialed with, both once more while they are replaced,
# and a snapshot on its way to it and from it.
PEER_FILES = 6
STRANGERS = 64          # connections to the peer port that have not said yet who they are


def reserved(members: int) -> int:
    """Descriptors that a node of a cluster of so many members may need beside those of its clients and of HTTP."""
    return JOURNAL_FILES + 2 * HELD_FILES + OTHER_FILES + STRANGERS + PEER_FILES * max(0, members - 1)
