"""The records of all queues (spec/state-machine 10.4), with their expiry and their places.

A record expires when the RETAIN of its queue has passed since its end, or when RETAINMAX, RETAINBYTES or, over all
queues, RETAINEDBYTES is exceeded, the oldest first. It is then no longer shown. Blocks whose records have all expired
are deleted whole, unread.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import NamedTuple, Protocol

from msgspec.structs import replace
from sortedcontainers import SortedList

from sockpqd.core import limits
from sockpqd.core.ops.settings import QueueSettings
from sockpqd.core.pages.page_space import PageSpace
from sockpqd.core.pages.seq_index import SeqIndex
from sockpqd.core.records.block import Block
from sockpqd.core.records.queue_records import QueueRecords
from sockpqd.core.records.record import JobRecord
from sockpqd.core.store.timer_index import NOTHING_MS, TimerIndex

PASSED_MAX = 1000       # blocks of which all records were removed, in one look at the newest records: 0.2 ms

# serial, base, ends since the base, sizes, reference of the page: see Block
PageRow = tuple[int, int, list[int], list[int], bytes]


class RecordStore(Protocol):
    """Provides the space for pages of records. Implemented by Pages."""

    @property
    def records(self) -> PageSpace:
        """Return the space, created at the first call."""
        ...


class RecordUndo(Protocol):
    """The part of UndoLog (state.py) for records."""

    def recorded(self, queue: str) -> None:
        """Record that the queue has a new record, the last one."""

    def passed(self, queue: str, over: int, count: int, total_bytes: int) -> None:
        """Record that records of the queue have expired; the arguments are the numbers before that."""

    def forgot(self, number: int, place: RecordPlace) -> None:
        """Record that the record of this number was removed from this place."""


Numbers = tuple[int, int, int]      # see QueueRecords.numbers


class RecordPlace(NamedTuple):
    """The place from which a record was removed, with its size as in Block."""

    queue: str
    block: Block
    at: int
    size: int


class FoundRecord(NamedTuple):
    """A record, the queue in which its job ended, and its place: the block, and its position there."""

    queue: str
    record: JobRecord
    block: Block
    at: int


class Records:
    """The records of one state. `settings`: the settings of all queues. `total_bytes`: the size of all current records.

    `store`: of pages; None: all are in memory. `hot_bytes`: the approximate memory of those in memory. `due`: when the
    first record of each queue expires; within an entry it may be earlier. `passed`: queues with records that expired in
    the current entry. `evictions_left`: how many records that entry may yet expire because all together have too many
    bytes.
    """

    __slots__ = (
        "_begun_blocks", "_blocks", "_full", "_gone", "_index", "_newest_ms", "_next_serial", "_oldest", "_queues",
        "_refused", "due", "evictions_left", "hot_bytes", "passed", "settings", "store", "total_bytes",
    )

    def __init__(self, settings: Mapping[str, QueueSettings]) -> None:
        self.settings = settings
        self.store: RecordStore | None = None
        self.total_bytes = 0
        self._queues: dict[str, QueueRecords] = {}
        self._blocks: dict[int, tuple[str, Block]] = {}     # by serial
        self._index = SeqIndex()                            # serials of blocks, by the numbers of the records in them
        self._next_serial = 1
        self._full: deque[Block] = deque()                  # to be written, the oldest first
        self._gone: deque[Block] = deque()                  # to be released: all their records are over
        self._begun_blocks: dict[int, Block] = {}           # by serial: they take more records
        self.hot_bytes = 0
        self._newest_ms = 0         # no record ended later
        self._refused = 0           # there was no room for a page when this was the next serial
        self.passed: dict[str, None] = {}
        self.evictions_left = limits.RECORDS_EVICTED
        self.due: TimerIndex[tuple[int, str]] = TimerIndex(limits.RECORD_BITS)      # (due_ms, queue)
        self._oldest: SortedList = SortedList()             # (listed_ms, queue)

    def __len__(self) -> int:
        return sum(records.count for records in self._queues.values())

    @property
    def _pages(self) -> PageSpace:
        assert self.store is not None
        return self.store.records

    def _read(self, page: int) -> bytes:
        return self._pages.get(page)

    # ---- queries

    def names(self) -> list[str]:
        """Return the queues with records, in the order of their names."""
        return sorted(name for name, records in self._queues.items() if records.count)

    def counts(self, queue: str, clock_ms: int) -> tuple[int, int]:
        """Return the number of current records of the queue, and their bytes."""
        records = self._queues.get(queue)
        if records is None:
            return 0, 0
        if records.due_ms > clock_ms:
            return records.count, records.total_bytes
        return records.counts_after(self._over_ms(queue, clock_ms))

    def queue_of(self, number: int) -> str | None:
        """Return the queue with the record of this number, even an expired one; None if there is none.

        Reads no page.
        """
        serial = self._index.find(number)
        known = None if serial is None else self._blocks.get(serial)
        return None if known is None else known[0]

    def find(self, number: int, clock_ms: int) -> FoundRecord | None:
        """Return the record of this number; None if there is none, or it has expired. Raises PageLost."""
        serial = self._index.find(number)
        known = None if serial is None else self._blocks.get(serial)
        if known is None:
            return None
        queue, block = known
        records = block.records(self._read)
        at = _position(block, records, number)
        over = block.first + at < self._queues[queue].over or block.ended_ms(at) <= self._over_ms(queue, clock_ms)
        return None if over else FoundRecord(queue, records[at], block, at)

    def work_of(self, number: int) -> int:
        """Return the work of finding the record of this number, at most, without looking at it; 0 if there is none."""
        serial = self._index.find(number)
        known = None if serial is None else self._blocks.get(serial)
        return 0 if known is None else limits.RECORD_WORK + known[1].kept_bytes // limits.STEP

    def newest(
        self, queue: str, clock_ms: int, count: int, before: int | None = None,
    ) -> tuple[list[JobRecord], int | None]:
        """Return up to `count` of the newest records of the queue before this position, all of one block.

        Also returns the position of the last of them; None: there are no others. Where very many were removed it may
        return none of them, and the position at which to go on. Raises PageLost.
        """
        records = self._queues.get(queue)
        found: list[JobRecord] = []
        if records is None:
            return found, None
        over_ms = self._over_ms(queue, clock_ms)
        blocks = records.blocks
        last = len(blocks) if before is None else bisect_left(blocks, before, key=_first)
        for number in range(last - 1, -1, -1):
            block = blocks[number]
            if not block.kept:
                if last - number == PASSED_MAX:
                    return found, block.first
                continue
            end = len(block) if before is None else min(len(block), before - block.first)
            start = max(0, records.over - block.first, block.ended_until(over_ms))
            if start >= len(block):
                break
            if end <= start:
                continue
            known = block.records(self._read)
            for at in range(end - 1, start - 1, -1):
                if block.sizes[at]:
                    found.append(known[at])
                    if len(found) == count:
                        return found, block.first + at
            return found, block.first + start
        return found, None

    def following(self, queue: str, clock_ms: int, place: tuple[int, ...]) -> Iterator[JobRecord]:
        """Yield the current records of the queue after this place, the oldest first. Raises PageLost.

        `place`: (), to begin with the oldest, or a time with the numbers of neighbouring records that ended then, the
        latest first. The search continues after the first of these that still exists; if none does, all records of that
        time are repeated. So a place is valid on every node, although positions differ.
        """
        records = self._queues.get(queue)
        if records is None:
            return
        position = max(records.over, self._position_behind(records, place) if place else 0)
        over_ms = self._over_ms(queue, clock_ms)
        first = max(0, bisect_right(records.blocks, position, key=_first) - 1)
        for block in islice(records.blocks, first, None):
            if not block.kept:
                continue            # at once, as there may be thousands
            start = max(0, position - block.first, block.ended_until(over_ms))
            if start < len(block):
                known = block.records(self._read)
                yield from [known[at] for at in range(start, len(block)) if block.sizes[at]]

    def _position_behind(self, records: QueueRecords, place: tuple[int, ...]) -> int:
        """Return the position of the first record after this place."""
        ended_ms, *numbers = place
        for number in numbers:
            serial = self._index.find(number)
            known = None if serial is None else self._blocks.get(serial)
            if known is None or self._queues[known[0]] is not records:
                continue
            block = known[1]
            if block.ended_ms(0) <= ended_ms <= block.ended_ms(-1):
                at = _position(block, block.records(self._read), number)
                if block.ended_ms(at) == ended_ms:
                    return block.first + at + 1
        blocks = records.blocks
        number = bisect_left(blocks, ended_ms, key=_base_ms) - 1
        return 0 if number < 0 else blocks[number].first + blocks[number].ended_until(ended_ms - 1)

    def oldest(self, queue: str, *, in_memory: bool = False) -> Iterator[JobRecord]:
        """Yield the current records of the queue, the oldest first; `in_memory`: only those in no page.

        Raises PageLost.
        """
        records = self._queues.get(queue)
        if records is not None:
            for block, start in records.parts():
                if block.page is None or not in_memory:
                    known = block.records(self._read)
                    yield from [known[at] for at in range(start, len(block)) if block.sizes[at]]

    def _over_ms(self, queue: str, clock_ms: int) -> int:
        """Return the time at or before which a job of the queue must have ended for its record to have expired."""
        return clock_ms - self.settings[queue].retain_ms

    # ---- changes

    def add(
        self, queue: str, settings: QueueSettings, record: JobRecord, bytes_max: int, undo: RecordUndo | None,
    ) -> None:
        """Keep the record of a job that ended now. `bytes_max`: of all queues together."""
        if record.ended_ms < self._newest_ms:       # after a CLONE of a cluster whose time was ahead
            record = replace(record, ended_ms=max(record.ended_ms, self._last_ms(queue)))
        records = self.append(queue, record)
        if undo is not None:
            undo.recorded(queue)
        if records.count > settings.retain_max or records.total_bytes > settings.retain_bytes:
            before = records.numbers
            records.pass_beyond(settings.retain_max, settings.retain_bytes)
            self._passed(queue, records, before, undo)
        self.evictions_left += 2        # so that the excess shrinks, however many are added
        if self.total_bytes > bytes_max:
            self.limit(bytes_max, undo)

    def limit(self, bytes_max: int, undo: RecordUndo | None = None) -> None:
        """Expire the oldest records of all queues until the rest have at most `bytes_max` bytes.

        At most `evictions_left` of them, as there may be very many small ones; the rest expire in the next entries.
        """
        while self.total_bytes > bytes_max and self.evictions_left > 0:
            self._pass_oldest(undo)
            self.evictions_left -= 1

    def _last_ms(self, queue: str) -> int:
        """Return the end of the newest record of the queue; 0 if there is none."""
        records = self._queues.get(queue)
        block = records.blocks[-1] if records is not None and records.blocks else None
        return 0 if block is None or not len(block) else block.ended_ms(-1)

    def append(self, queue: str, record: JobRecord) -> QueueRecords:
        """Add a record that ended last, regardless of limits; returns the records of the queue."""
        ended_ms, kept_bytes, records = record.ended_ms, record.kept_bytes, self._queues.get(queue)
        if records is None or not records.count:
            records = self._begun(queue, ended_ms)
        block = records.blocks[-1] if records.blocks else None
        if block is None or not block.add(record, kept_bytes):
            if block is not None and self._begun_blocks.pop(block.serial, None) is not None:
                self._full.append(block)
            block = self._new_block(queue, records, self._next_serial, ended_ms)
            self._begun_blocks[block.serial] = block
            block.add(record, kept_bytes)
        self.hot_bytes += limits.RECORD_BYTES + kept_bytes
        self._index.add_one(record.number, block.serial)
        if ended_ms > self._newest_ms:
            self._newest_ms = ended_ms
        records.count += 1
        records.total_bytes += kept_bytes
        self.total_bytes += kept_bytes
        return records

    def _begun(self, queue: str, ended_ms: int) -> QueueRecords:
        """Return the records of the queue, emptied if all of them have expired by `ended_ms`."""
        records = self._queues.get(queue)
        if records is None:
            records = self._queues[queue] = QueueRecords()
        elif records.count:
            return records
        else:
            self.due.remove((records.due_ms, queue))
            self._oldest.remove((records.listed_ms, queue))
        records.due_ms, records.listed_ms = ended_ms + self.settings[queue].retain_ms, ended_ms
        self.due.add((records.due_ms, queue))
        self._oldest.add((ended_ms, queue))
        return records

    def _new_block(self, queue: str, records: QueueRecords, serial: int, base_ms: int) -> Block:
        block = Block(serial, records.end, base_ms)
        self._next_serial = max(self._next_serial, serial + 1)
        self._blocks[block.serial] = queue, block
        records.blocks.append(block)
        return block

    def _count(self, records: QueueRecords, count: int, kept_bytes: int) -> None:
        records.count += count
        records.total_bytes += kept_bytes
        self.total_bytes += kept_bytes

    def _passed(self, queue: str, records: QueueRecords, before: Numbers, undo: RecordUndo | None) -> None:
        """Record that records of the queue have expired; `before`: its numbers before that."""
        self.total_bytes += records.total_bytes - before[2]
        if records.over != before[0]:
            self.passed[queue] = None
            if undo is not None:
                undo.passed(queue, *before)

    def _pass_oldest(self, undo: RecordUndo | None) -> None:
        """Expire the oldest record of all queues."""
        queue = self._oldest[0][1]
        while self._relist(queue):
            queue = self._oldest[0][1]
        records = self._queues[queue]
        before = records.numbers
        records.pass_beyond(records.count - 1, records.total_bytes)
        self._passed(queue, records, before, undo)

    def _relist(self, queue: str) -> bool:
        """List the queue by the end of its oldest record; returns whether it was listed by another time."""
        records = self._queues[queue]
        first_ms = records.first_end_ms()
        listed_ms = NOTHING_MS if first_ms is None else first_ms
        if listed_ms == records.listed_ms:
            return False
        self._oldest.remove((records.listed_ms, queue))
        records.listed_ms = listed_ms
        self._oldest.add((listed_ms, queue))
        return True

    def settle(self, clock_ms: int) -> None:
        """Release blocks whose records have all expired, at least RECORDS_REMOVED records, at the end of an entry.

        Then each queue is indexed by its first record: an index that a snapshot does not keep must decide nothing.
        """
        for queue in self.passed:
            records = self._queues.get(queue)
            if records is None:
                continue
            records.pass_removed()
            for block in records.passed_blocks():
                self._forget(block)
            if records.blocks:
                self._relist(queue)     # now, so that no later entry finds very many queues to list again
                self._refresh_due(queue, records)
                if self._newest_ms > clock_ms:
                    records.lower_removed(clock_ms)
            else:
                self._unlist(queue, records)
        self.passed.clear()
        removed = 0
        while self._gone and removed < limits.RECORDS_REMOVED:
            removed += len(self._gone[0])
            self._release(self._gone.popleft())

    @property
    def unsettled(self) -> bool:
        """True if `settle` has something to do."""
        return bool(self.passed or self._gone)

    def expire(self, clock_ms: int) -> None:
        """Expire records whose time has passed, of at most RECORD_QUEUES_MAX queues."""
        for _ in range(limits.RECORD_QUEUES_MAX):
            first = self.due.first_due(clock_ms)
            if first is None:
                return
            queue = first[1]
            records = self._queues[queue]
            before = records.numbers
            records.pass_until(self._over_ms(queue, clock_ms))
            self._passed(queue, records, before, None)
            self._refresh_due(queue, records)

    def next_due_ms(self) -> int | None:
        """Return the time of the next work for an entry; 0: at once, None: never."""
        return 0 if self._gone else self.due.next_due_ms()

    def _refresh_due(self, queue: str, records: QueueRecords) -> None:
        """Index the queue by the time at which its first record expires, exactly."""
        first_ms = records.first_end_ms()
        due_ms = NOTHING_MS if first_ms is None else first_ms + self.settings[queue].retain_ms
        if due_ms != records.due_ms:
            self._set_due(queue, records, due_ms)

    def _set_due(self, queue: str, records: QueueRecords, due_ms: int) -> None:
        self.due.remove((records.due_ms, queue))
        records.due_ms = due_ms
        self.due.add((due_ms, queue))

    def _unlist(self, queue: str, records: QueueRecords) -> None:
        del self._queues[queue]
        self.due.remove((records.due_ms, queue))
        self._oldest.remove((records.listed_ms, queue))

    def _forget(self, block: Block) -> None:
        """Remove the block's records from the index; `settle` releases the block."""
        del self._blocks[block.serial]
        self._begun_blocks.pop(block.serial, None)
        self._gone.append(block)

    def _release(self, block: Block) -> None:
        self.hot_bytes -= block.hot_bytes
        self._index.drop(block.serial, block.kept)
        if block.page is not None:
            self._pages.free(block.page)

    def remove(self, found: FoundRecord, undo: RecordUndo | None) -> None:
        """Remove a record that `find` has just found."""
        queue, record, block, at = found
        number = record.number
        place = RecordPlace(queue, block, at, block.remove(at))
        self._count(self._queues[queue], -1, 1 - place.size)
        self._index.remove((number,))
        self.passed[queue] = None
        if undo is not None:
            undo.forgot(number, place)

    def purge(self, queue: str, clock_ms: int) -> int:
        """Remove all records of the queue; returns how many current ones there were."""
        records = self._queues.get(queue)
        if records is None:
            return 0
        count, _ = self.counts(queue, clock_ms)
        before = records.numbers
        records.pass_beyond(0, 0)
        self._passed(queue, records, before, None)
        return count

    def drop(self, queue: str) -> None:
        """Forget the queue with its records."""
        records = self._queues.get(queue)
        if records is None:
            return
        self.total_bytes -= records.total_bytes
        for block in records.blocks:
            self._forget(block)
        self._unlist(queue, records)

    def configured(self, queue: str, old: QueueSettings, new: QueueSettings, clock_ms: int) -> None:
        """Apply changed settings: expired records stay expired, and more expire if the settings keep less."""
        records = self._queues.get(queue)
        if records is None:
            return
        before = records.numbers
        for settings in (old, new):
            records.pass_until(clock_ms - settings.retain_ms)
            records.pass_beyond(settings.retain_max, settings.retain_bytes)
        self._passed(queue, records, before, None)
        first_ms = records.first_end_ms()
        self._set_due(queue, records, NOTHING_MS if first_ms is None else first_ms + new.retain_ms)

    # ---- undoing a batch

    def take_back(self, queue: str) -> None:
        """Undo the latest `add` to this queue."""
        records = self._queues[queue]
        block = records.blocks[-1]
        record = block.pop()
        self.hot_bytes -= limits.RECORD_BYTES + record.kept_bytes
        self._count(records, -1, -record.kept_bytes)
        self._index.remove((record.number,))
        if not block.sizes:
            records.blocks.pop()
            del self._blocks[block.serial]
            self._begun_blocks.pop(block.serial, None)      # it is among the full ones if another was begun after it
            if not records.blocks:
                self._unlist(queue, records)

    def restore(self, queue: str, over: int, count: int, total_bytes: int) -> None:
        """Undo the expiry of records of the queue."""
        records = self._queues[queue]
        self.total_bytes += total_bytes - records.total_bytes
        records.over, records.count, records.total_bytes = over, count, total_bytes
        self._index_first(queue)

    def put_back(self, number: int, place: RecordPlace) -> None:
        """Undo the removal of a record from this place."""
        place.block.put_back(place.at, place.size)
        self._count(self._queues[place.queue], 1, place.size - 1)
        self._index.add_one(number, place.block.serial)
        self._index_first(place.queue)

    def _index_first(self, queue: str) -> None:
        """Index the first record of the queue, which is an earlier one again."""
        self._relist(queue)
        records = self._queues[queue]
        first_ms = records.first_end_ms()
        if first_ms is not None and records.due_ms > (due_ms := first_ms + self.settings[queue].retain_ms):
            self._set_due(queue, records, due_ms)

    # ---- pages

    def page_out(self) -> bool:
        """Write a block into a page if one is full, or if too much is in memory; returns whether there is more to do.

        If there is no room the block stays in memory; the next attempt is made when another block has begun.
        """
        if self.store is None or self._refused == self._next_serial:
            return False
        block = self._next_to_leave()
        if block is None:
            return False
        hot_bytes = block.hot_bytes
        if not block.write(self.store.records):
            self._refused = self._next_serial
            return False
        self.hot_bytes -= hot_bytes
        self._begun_blocks.pop(block.serial, None)
        return bool(self._full) or self.hot_bytes > limits.RECORDS_HOT_BYTES

    @property
    def crowded(self) -> bool:
        """True if more is in memory than is allowed between two entries, although there is room on disk."""
        return self.hot_bytes > limits.RECORDS_CROWDED_BYTES and self._refused != self._next_serial

    def _next_to_leave(self) -> Block | None:
        """Return the block to write next: the oldest full one, or one that is not full; None if all may stay."""
        while self._full:
            block = self._full[0]
            if block.page is None and block.serial in self._blocks:
                return block
            self._full.popleft()
        if self.hot_bytes <= limits.RECORDS_HOT_BYTES:
            return None
        return next(iter(self._begun_blocks.values()), None)

    def spans(self) -> Iterator[tuple[int, bytes, bytes]]:
        """Return the index of the numbers in pages, in a form for `adopt_span`."""
        others = {serial for serial, (_, block) in self._blocks.items() if block.page is None}
        return self._index.spans(others | {block.serial for block in self._gone})

    def pages(self, queue: str) -> tuple[int, list[PageRow]]:
        """Return the pages of the queue, as rows for `adopt`, and the number of expired records in the first.

        Each page has a current record, so the index has its serial.
        """
        parts = [
            (block, start) for block, start in self._queues[queue].parts()
            if block.page is not None and any(block.sizes[start:])
        ]
        if not parts:
            return 0, []
        space = self._pages
        return parts[0][1], [
            (block.serial, block.base_ms, list(block.ends), list(block.sizes), space.reference(block.page or 0))
            for block, _ in parts
        ]

    def adopt_span(self, span: int, lows: bytes, pages: bytes) -> None:
        """Take over a part of the index, before any block, as new blocks need greater serials. Raises ValueError."""
        self._next_serial = max(self._next_serial, self._index.restore(span, lows, pages) + 1)

    def adopt(self, queue: str, row: PageRow) -> None:
        """Take over a page that an earlier process left. Raises PageLost."""
        serial, base_ms, ends, sizes, reference = row
        records = self._begun(queue, base_ms)
        block = self._new_block(queue, records, serial, base_ms)
        block.adopt(self._pages.adopt(reference), ends, sizes)
        self._newest_ms = max(self._newest_ms, block.ended_ms(-1))
        kept = [size for size in sizes if size]
        self._count(records, len(kept), sum(kept) - len(kept))

    def adopt_start(self, queue: str, start: int) -> None:
        """Treat the first `start` records of the queue's first page as expired."""
        records = self._queues[queue]
        before = records.total_bytes
        records.pass_positions(start)
        self.total_bytes += records.total_bytes - before
        self._relist(queue)
        self._refresh_due(queue, records)

    def number_is_free(self, number: int) -> bool:
        """Return whether no record has this number."""
        serial = self._index.find(number)
        return serial is None or serial not in self._blocks


def _first(block: Block) -> int:
    return block.first


def _base_ms(block: Block) -> int:
    return block.base_ms


def _position(block: Block, records: list[JobRecord], number: int) -> int:
    """Return the position of the record of this number, which is in the block."""
    return next(at for at, record in enumerate(records) if record.number == number and block.sizes[at])
