"""The state that results from a journal's records. Live changes and replay go through the same apply()."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgpack

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import Header, PlacedRecord
from sockpqd.cluster.journal.log_index import LogIndex


class StateSummary(NamedTuple):
    """A summary of the state: the body of a STATE record, a MessagePack map with these keys."""

    first: int          # entries first..next-1 are in the journal
    next: int
    covered: int
    term: int
    vote: str | None
    voter: bool
    acknowledged: dict[str, int] = {}       # absent from older journals; never changed in place

    def pack(self) -> bytes:
        """The body of the STATE record."""
        body: bytes = msgpack.packb(self._asdict())
        return body

    @classmethod
    def unpacked(cls, body: bytes) -> StateSummary:
        """The summary in the body of a STATE record."""
        return cls(**msgpack.unpackb(body))


class JournalState:
    """All durable state except the commit index, which is in each frame's header, and the commands themselves."""

    def __init__(self) -> None:
        self.table = LogIndex()
        self.covered = 0                # index up to which the newest snapshot makes the log superfluous
        self.term = 0
        self.vote: str | None = None
        self.voter = False
        self.acknowledged: dict[str, int] = {}      # by name of another node: what it had on its disk

    def apply(self, kind: int, a: int, b: int, body: bytes) -> None:
        """Execute a record other than ENTRY and STATE."""
        if kind == journal_format.TRUNCATE:
            self.table.truncate(a)
            self.covered = min(self.covered, a)
        elif kind == journal_format.PREFIX:
            self.table.drop(a)
            self.covered = b
        elif kind == journal_format.CLEAR:
            self.table.reset(1)
            self.covered = 0
        elif kind == journal_format.TERM:
            self.term, self.vote = a, body.decode() if b else None
        elif kind == journal_format.VOTER:
            self.voter = bool(a)
        elif kind == journal_format.ACKNOWLEDGED:
            self.acknowledge(body.decode(), a)
        else:
            raise ValueError(f"record of kind {kind}")

    def acknowledge(self, name: str, index: int) -> None:
        """Remember that this node had all committed entries up to `index` on its disk; 0: forget it."""
        others = {other: known for other, known in self.acknowledged.items() if other != name}
        self.acknowledged = {**others, name: index} if index else others

    def restated(self) -> StateSummary:
        """The summary for a STATE record."""
        return StateSummary(
            self.table.first, self.table.next, self.covered, self.term, self.vote, self.voter, self.acknowledged)

    def several_segments_covered(self) -> bool:
        """Return whether the entries that the newest snapshot covers begin in an older segment than they end."""
        table = self.table
        if table.first < table.indexed:
            return table.first < self.covered       # otherwise nothing of it goes before there is another snapshot
        return table.first <= self.covered < table.next and table.location(table.first).segment < table.location(
            self.covered).segment

    def begin(self, body: bytes) -> None:
        """Adopt the summary at the start of a segment; entries before it are in older segments, or removed later."""
        restated = StateSummary.unpacked(body)
        self.covered, self.term, self.vote, self.voter, self.acknowledged = restated[2:]
        self.table.reset(restated.first, restated.next)

    def agrees(self, body: bytes) -> bool:
        """Return whether the summary at the start of a later segment matches this state."""
        return StateSummary.unpacked(body) == self.restated()


class FrameReplay:
    """Executes the frames of consecutive segments, in order, on a new state."""

    def __init__(self, state: JournalState, damaged: Callable[[int, int, str], None]) -> None:
        """`damaged(segment, offset, what)` raises JournalDamaged."""
        self.begun = False          # there was a frame
        self.commit_index = 0       # in the last one
        self._state = state
        self._damaged = damaged

    def frame(self, segment: int, data: bytes, header: Header, records: list[PlacedRecord]) -> None:
        """Execute the records of a frame, whose bodies are in `data`."""
        state = self._state
        self.commit_index = header.commit_index
        for kind, a, b, offset, length, crc in records:
            if kind == journal_format.ENTRY:
                state.table.append(a, b, length, crc)
                state.table.put(a, segment, offset)
            elif kind != journal_format.STATE:
                state.apply(kind, a, b, data[offset:offset + length])
            elif not self.begun:
                state.begin(data[offset:offset + length])
            elif not state.agrees(data[offset:offset + length]):
                self._damaged(segment, 0, "it does not continue the segment before it")
        self.begun = True
