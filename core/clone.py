"""A CLONE under way: a snapshot that arrives in chunks through the log (CLUSTER.md 6.6).

The chunks are read as they come, so that the last one has little left to do. They are kept as well: a node that
restores a snapshot taken in the middle of a CLONE must be able to go on.
"""

from __future__ import annotations

from collections.abc import Iterable

from core.frames import SnapshotError
from core.restore import Reader
from core.state import State


class PendingClone:
    """The chunks of clone `clone`, `total_bytes` in the end."""

    __slots__ = ("_reader", "_received_bytes", "chunks", "clone", "total_bytes")

    def __init__(self, clone: int, total_bytes: int) -> None:
        self.clone = clone
        self.total_bytes = total_bytes
        self.chunks: list[bytes] = []
        self._received_bytes = 0
        self._reader = Reader(foreign=True)

    def add(self, data: bytes) -> None:
        """The next chunk. Raises SnapshotError when the bytes so far cannot become a snapshot of the size announced."""
        self._received_bytes += len(data)
        if self._received_bytes > self.total_bytes:
            raise SnapshotError("more bytes than announced")
        self._reader.feed(data)
        self.chunks.append(data)

    def finish(self) -> State:
        """The state in the snapshot. Raises SnapshotError when it is not complete or wrong."""
        if self._received_bytes != self.total_bytes:
            raise SnapshotError("fewer bytes than announced")
        return self._reader.finish()


def restore(chunks: Iterable[bytes]) -> State:
    """The state in a whole snapshot, with the CLONE that was under way in it. Raises SnapshotError."""
    reader = Reader()
    for chunk in chunks:
        reader.feed(chunk)
    state = reader.finish()
    if reader.pending is not None:
        head, received = reader.pending
        state.clone = PendingClone(head.clone, head.total_bytes)
        for chunk in received:
            state.clone.add(chunk)
    return state
