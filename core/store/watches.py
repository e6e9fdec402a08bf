"""The jobs whose end is awaited (AWAIT), on this node only: not part of the state.

A job is watched by the seq of its place, and the watch is carried over when a job without a number gets a new seq at
the tail of its priority. Its end is reported under its handles: the seqs that it had when an AWAIT selected it. A seq
is assigned once, so a handle always means the same job.

A handle is valid until the next entry; if it is not kept by then, it is forgotten, as happens on all nodes without the
waiting client, which execute the AWAIT too.
"""

from __future__ import annotations

from typing import Protocol

Handles = tuple[int, ...]


class WatchUndo(Protocol):
    """Records changes of the watches, so that a batch can be undone."""

    def carried(self, old: int, new: int) -> None:
        """Record that the seq of a watched job has changed from `old` to `new`."""

    def unwatched(self, seq: int, handles: Handles) -> None:
        """Record that the watched job with this seq has ended."""


class Watches(dict[int, Handles]):
    """The handles of each watched job, by the seq that it has now. Nearly always there are none."""

    __slots__ = ("_seqs", "asked")

    def __init__(self) -> None:
        super().__init__()
        self._seqs: dict[int, int] = {}         # of the handles
        self.asked: set[int] = set()            # handles that nobody has kept yet

    def ask(self, seq: int) -> int:
        """Watch the job with this seq at least until the next entry; returns its handle."""
        if seq not in self._seqs:
            self[seq] = (*self.get(seq, ()), seq)
            self._seqs[seq] = seq
            self.asked.add(seq)
        return seq

    def keep(self, handle: int) -> None:
        """Watch the job of this handle until it ends, or `forget`."""
        self.asked.discard(handle)

    def forget(self, handle: int) -> None:
        """Stop watching the job of this handle, if it has not ended."""
        self.asked.discard(handle)
        seq = self._seqs.pop(handle, None)
        if seq is None:
            return
        left = tuple([other for other in self[seq] if other != handle])
        if left:
            self[seq] = left
        else:
            del self[seq]

    def forget_unkept(self) -> None:
        """Stop watching jobs that were not kept."""
        for handle in list(self.asked):
            self.forget(handle)

    def clear(self) -> None:
        """Stop watching all jobs, as when another node leads."""
        super().clear()
        self._seqs.clear()
        self.asked.clear()

    def carry(self, old: int, new: int, undo: WatchUndo | None) -> None:
        """Record that the seq of a watched job has changed from `old` to `new`."""
        handles = self[new] = self.pop(old)
        for handle in handles:
            self._seqs[handle] = new
        if undo is not None:
            undo.carried(old, new)

    def end(self, seq: int, undo: WatchUndo | None) -> Handles:
        """Record that the watched job with this seq has ended, or is dead; returns its handles."""
        handles = self.pop(seq)
        for handle in handles:
            del self._seqs[handle]
        if undo is not None:
            undo.unwatched(seq, handles)
        return handles

    def watch_again(self, seq: int, handles: Handles) -> None:
        """Undo `end`, with the handles that it returned."""
        self[seq] = handles
        for handle in handles:
            self._seqs[handle] = seq
