"""The feeds of a node: how many run, what they have sent, and the snapshot from which a copy begins.

The snapshot is kept for a while, as a file without a name, so that a copy whose connection broke gets the rest of it
instead of another one from the beginning.
"""

from __future__ import annotations

import asyncio
import os

from sockpqd.gateway.limits import STREAM_PIECE_BYTES


class FeedSnapshot:
    """A snapshot of the state after the entry `index`, in an open file without a name; closed with its last user."""

    def __init__(self, file: int, index: int, chain: bytes) -> None:
        self.index = index
        self.chain = chain          # the hash of the log up to that entry
        self.size = os.fstat(file).st_size
        self.users = 0
        self.forgetting: asyncio.TimerHandle | None = None      # forgets it when nobody has used it for a while
        self._file = file
        self._kept = True

    def read(self, offset: int) -> bytes:
        """Return the next piece from this offset on, b"" at the end. Raises OSError."""
        return os.pread(self._file, STREAM_PIECE_BYTES, offset)

    def use(self) -> None:
        """Keep the file open until `leave`."""
        self.users += 1

    def leave(self) -> None:
        """Undo one `use`; the last one closes the file, if it is not kept any longer."""
        self.users -= 1
        self._close_unused()

    def forget(self) -> None:
        """Close the file when nobody uses it any longer."""
        if self._kept:
            self._kept = False
            self._close_unused()

    def _close_unused(self) -> None:
        if not self.users and not self._kept:
            os.close(self._file)


class Feeds:
    """The state that the feeds of a node share. The counters start at 0 with the process."""

    def __init__(self) -> None:
        self.running = 0            # connections that are fed
        self.sent_entries = 0
        self.sent_bytes = 0         # of all lines and entries, not of snapshots
        self.snapshot: FeedSnapshot | None = None

    def keep(self, snapshot: FeedSnapshot) -> None:
        """Keep this snapshot instead of an earlier one."""
        self.forget(self.snapshot)
        self.snapshot = snapshot

    def forget_before(self, index: int) -> None:
        """Forget a snapshot that nobody reads, because a copy has come to the entries after it."""
        if self.snapshot is not None and self.snapshot.index < index and not self.snapshot.users:
            self.forget(self.snapshot)

    def forget(self, snapshot: FeedSnapshot | None) -> None:
        """Keep this snapshot no longer."""
        if snapshot is not None:
            snapshot.forget()
            if self.snapshot is snapshot:
                self.snapshot = None
