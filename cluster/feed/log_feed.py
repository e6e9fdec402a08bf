"""Reads executed entries out of the journal for copies of this cluster.

Nobody waits for a copy: a feed holds neither entries nor files between two slices. A copy that is too slow finds that
the entries it needs are gone from the journal, and starts again from a snapshot.

The newest entries are in memory. Older ones are read from the disk in a thread, one slice at a time for all feeds
together, so that they do not compete with each other for the disk that the journal is written to. A slice is read to
its end even if its feed ends meanwhile: the thread uses open files, and a copy that connects again needs the same
segments indexed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

from sockpqd.cluster import limits
from sockpqd.cluster.api import Checkpoint, FeedRefusal, FeedSlice, Frame
from sockpqd.cluster.feed.feed_thread import FeedStopped
from sockpqd.cluster.journal.archived_segments import Span
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.journal.log_index import Entry, Stretch
from sockpqd.cluster.raft.pysyncobj_adapter import Replica
from sockpqd.cluster.storage.errors import JournalDamaged
from sockpqd.cluster.storage.state_hash import Chain
from sockpqd.core import head_of_entry

log = logging.getLogger("sockpqd.cluster")

Result = TypeVar("Result")


class DiskWork(Protocol):
    """Runs work that may block on the disk; FeedThread runs it outside the event loop."""

    async def run(self, work: Callable[[], Result]) -> Result:
        """Call it, and never return before it has, as the caller closes its files. Raises FeedStopped."""

    def rest(self) -> None:
        """Let others run, in the midst of long work. Raises FeedStopped."""

    def stop(self) -> None:
        """Begin nothing more, and end long work at its next rest."""

    def join(self) -> None:
        """Wait until the work that has begun has ended."""


class LogFeed:
    """Implements cluster.api.Feed."""

    def __init__(self, journal: Journal, replica: Replica, chain: Chain, work: DiskWork) -> None:
        self._journal = journal
        self._replica = replica
        self._chain = chain
        self._work = work
        self._line = asyncio.Lock()                     # one slice of the disk at a time
        self._reading: asyncio.Task[FeedSlice | None] | None = None     # the one that has the line

    async def stop(self) -> None:
        """Read nothing more from the disk; returns when the thread has ended."""
        self._work.stop()
        async with self._line:
            self._work.join()

    @property
    def executed(self) -> int:
        return self._replica.applied_index

    def refusal(self, index: int, checkpoint: Checkpoint | None) -> FeedRefusal | None:
        if index > self.executed + 1:
            return FeedRefusal.TOO_NEW
        if index < self._journal.oldest_index:
            return FeedRefusal.TOO_OLD
        if checkpoint is None:
            return None
        # A copy that begins with a snapshot has the hash at its index, which is rarely a checkpoint of this node. The
        # copy compares itself at the next one then.
        return None if self._chain.at(checkpoint.index) in (None, checkpoint.hash) else FeedRefusal.DIFFERENT

    def checkpoints(self, after: int, up_to: int) -> list[Checkpoint]:
        return [Checkpoint(index, value) for index, value in self._chain.between(after, up_to)]

    async def read(self, index: int) -> FeedSlice | None:
        recent = self._recent(index)
        if recent is not None:
            return recent
        await self._line.acquire()
        self._reading = asyncio.create_task(self._from_disk(index))
        self._reading.add_done_callback(lambda _: self._line.release())
        return await asyncio.shield(self._reading)

    async def _from_disk(self, index: int) -> FeedSlice | None:
        try:
            while (span := self._unindexed(index)) is not None:
                with self._journal.to_index(span) as make:
                    self._journal.keep_index(await self._work.run(lambda: make(self._work.rest)))
            stretch = self._stretch(index)
            if stretch is None:             # it was read into memory, or is gone, while this waited
                return self._recent(index)
            with self._opened(stretch) as file:
                commands = await self._work.run(lambda: self._journal.read_stretch(file, stretch))
        except FeedStopped:                 # the copy must not take the entries for gone: its connection ends soon
            return FeedSlice([], index)
        except (OSError, JournalDamaged) as error:
            log.error("entry %d cannot be read for a copy in another region: %s", index, error)
            return None
        return self._slice(index, commands)

    @contextmanager
    def _opened(self, stretch: Stretch) -> Iterator[int]:
        file = self._journal.segments.open(stretch.segment)
        try:
            yield file
        finally:
            self._journal.segments.close_file(file)

    def _recent(self, index: int) -> FeedSlice | None:
        """The entries from this one on if they are in memory, or if there are none yet."""
        if index > self.executed:
            return FeedSlice([], index)
        entries = self._journal.recent(index, self.executed, limits.FEED_SLICE_BYTES)
        return self._slice(index, entries) if entries else None

    def _on_disk(self, index: int) -> bool:
        return not self._journal.is_recent(index) and index >= self._journal.oldest_index

    def _unindexed(self, index: int) -> Span | None:
        """Return the segments to index before this entry can be read from the disk; None: there are none."""
        return self._journal.unindexed(index) if self._on_disk(index) else None

    def _stretch(self, index: int) -> Stretch | None:
        """Return the places of the entries from this one on; None: they are in memory, or gone."""
        if not self._on_disk(index):
            return None
        return self._journal.stretch(index, self.executed, limits.FEED_SLICE_BYTES)

    def _slice(self, index: int, commands: Sequence[Entry]) -> FeedSlice:
        frames = []
        for command, at, _ in commands:
            data = self._replica.argument(command)
            if data is not None:            # otherwise it is the library's own, and nothing is executed for it
                head = head_of_entry(data)
                frames.append(Frame(at, head.now_ms, head.seed, bytes(data)))
        return FeedSlice(frames, commands[-1][1] + 1 if commands else index)
