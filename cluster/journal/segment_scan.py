"""Reads the segments of a journal at the start: finds its end, and checks whether it can be trusted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal_format import Header, PlacedRecord
from sockpqd.cluster.storage.errors import START_NEWER, JournalTooNew

# (segment number, contents of its file, frame's header, frame's records)
Replay = Callable[[int, bytes, Header, list[PlacedRecord]], None]


class Files(Protocol):
    """The part of the segments (segments.py) that a scan uses."""

    journal_id: bytes
    sequence: int               # of the last valid frame

    def path(self, segment: int) -> Path:
        """The file of a segment."""

    def damaged(self, segment: int, offset: int, what: str) -> None:
        ...


class Scan:
    """Reads segments in order, finds the end of the journal and checks that it is intact (journal_format.py)."""

    def __init__(self, segments: Files, replay: Replay) -> None:
        self.active = 0             # segment of the last valid frame
        self.position = 0           # end of that frame
        self.ends: dict[int, int] = {}      # segment -> end of its last valid frame
        self._segments = segments
        self._replay = replay
        self._torn: tuple[int, int] | None = None       # segment and offset of an incomplete frame
        self._blank: int | None = None                  # the first segment without a frame

    def read(self, number: int, data: bytes) -> int:
        """Scan the contents of the next segment; returns its size."""
        position = 0
        while position < len(data) and self._torn is None:
            if journal_format.is_blank(data, position):
                break
            header = journal_format.read_header(data, position)
            if header is not None:
                self._check_header(number, position, header)
            records = None if header is None else journal_format.read_records(data, position, header)
            if header is None or records is None:
                self._unsound(number, position, data, header)
                break
            self._accept(number, position, data, header, records)
            position += header.length
        self._check_rest(number, position, data)
        self.ends[number] = position
        if position == 0:
            self._empty(number)
        return len(data)

    def _check_header(self, number: int, position: int, header: Header) -> None:
        """Check that a valid header belongs to the next frame of this journal."""
        segments = self._segments
        if header.version > journal_format.VERSION:
            raise JournalTooNew(
                f"journal {segments.path(number)} has format {header.version}; this version of sockpqd reads"
                f" formats up to {journal_format.VERSION}. {START_NEWER}"
            )
        if not segments.journal_id:
            segments.journal_id, segments.sequence = header.journal_id, header.sequence - 1
        if header.journal_id != segments.journal_id:
            segments.damaged(number, position, "the frame there belongs to another journal")
        expected = segments.sequence + 1
        if header.sequence != expected:
            segments.damaged(number, position, f"frame {header.sequence} is there, frame {expected} should be")

    def _accept(self, number: int, position: int, data: bytes, header: Header, records: list[PlacedRecord]) -> None:
        if position == 0:
            self._check_first(number, data, records)
        self._segments.sequence = header.sequence
        self.active, self.position = number, position + header.length
        self._replay(number, data, header, records)

    def _check_first(self, number: int, data: bytes, records: list[PlacedRecord]) -> None:
        first = records[0] if records else None
        if first is None or first.kind != journal_format.STATE or first.b != number:
            self._segments.damaged(number, 0, "it does not begin as a segment of this number does")
        elif first.a != len(data):
            self._segments.damaged(number, len(data), f"it is {len(data)} bytes long and should be {first.a}")

    def _unsound(self, number: int, position: int, data: bytes, header: Header | None) -> None:
        if not journal_format.is_torn(data, position, header):
            self._segments.damaged(number, position, "the frame there has changed since it was written")
        self._torn = (number, position)

    def _check_rest(self, number: int, position: int, data: bytes) -> None:
        """Check that no later frame follows the end. (An old one may: a job's data can be a copy of a journal.)"""
        segments = self._segments
        segment, end = self._torn or (number, position)
        for offset, header in journal_format.later_headers(data, position):
            expected = segments.sequence + 1
            if header.journal_id == segments.journal_id and header.sequence > expected:
                found = f"{segments.path(number).name} has frame {header.sequence} at {offset}"
                segments.damaged(segment, end, f"frame {expected} is missing or incomplete, but {found}")

    def _empty(self, number: int) -> None:
        if self._blank is not None:
            name = self._segments.path(number).name
            self._segments.damaged(self._blank, 0, f"it holds no frame, and {name} is only made when it does")
        self._blank = number
