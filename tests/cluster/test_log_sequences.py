"""The log as a sequence, its slices, its index and its cache: each against a list."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.journal import log_view
from sockpqd.cluster.journal.log_cache import LogCache
from sockpqd.cluster.journal.log_index import Entry, EntryLocation, LogIndex, LogSlice
from sockpqd.cluster.journal.log_view import LogView

PLACES = [None, *range(-7, 8)]
SLICES = [slice(start, stop, step) for start, stop, step in itertools.product(PLACES, PLACES, (None, 1, 2, -1))]


def entries(first: int, count: int) -> list[Entry]:
    return [(b"%d" % index, index, 1) for index in range(first, first + count)]


class Log(LogView):
    """Entries in memory, of which at least the last is in the cache; `reads`: the indexes of those not there."""

    def __init__(self, first: int, count: int, cached: int) -> None:
        super().__init__(1 << 20)
        self._show_from(first)
        self.all = entries(first, count)
        self.last_index = first + count - 1
        self.reads: list[int] = []
        for entry in self.all[count - cached:]:
            self._cache.add(*entry)

    def entry(self, index: int) -> Entry:
        if not self.first_index <= index <= self.last_index:
            raise IndexError(index)
        self.reads.append(index)
        return self.all[index - self.first_index]


class Reader:
    """Reads the entries of a slice out of more, and counts how often."""

    def __init__(self, first: int, count: int) -> None:
        self.all = entries(first, count)
        self.reads: list[int] = []
        self.slice = LogSlice(self.read, first, first + count)

    def read(self, index: int) -> Entry:
        self.reads.append(index)
        return b"%d" % index, index, 1


@pytest.mark.parametrize("cached", [1, 3, 5])
def test_a_log_is_a_sequence(cached: int) -> None:
    log = Log(4, 5, cached)
    assert_sequence(log, log.all)
    assert log[2:2] == []
    assert_sequence(Log(4, 0, 0), [])


@pytest.mark.parametrize("walked", [0, 1, 3, 5])
def test_a_slice_of_it_is_a_sequence(walked: int) -> None:
    reader = Reader(4, 5)
    for _ in itertools.islice(reader.slice, walked):
        pass
    assert_sequence(reader.slice, reader.all)


def assert_sequence(view: Sequence[Entry], expected: list[Entry]) -> None:
    assert len(view) == len(expected)
    for position in range(-len(expected), len(expected)):
        assert view[position] == expected[position], position
    for position in (len(expected), len(expected) + 1, -len(expected) - 1):
        with pytest.raises(IndexError):
            view[position]
    for part in SLICES:
        assert list(view[part]) == expected[part], part
    assert list(view) == expected


def test_what_is_asked_for_constantly_comes_from_memory() -> None:
    log = Log(4, 5, 3)
    assert log[-1] == log.all[-1]
    assert log[2:] == log[-3:] == log.all[2:]
    assert log.reads == []
    log._oldest = log.all[0]
    assert log[0] == log.all[0]
    assert log.reads == []
    assert isinstance(log[1:], LogSlice)        # longer than what is in memory: not read yet
    assert log.reads == []


def test_long_parts_are_not_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_view, "_LIST_ENTRIES_MAX", 3)
    log = Log(1, 5, 5)
    assert isinstance(log[2:], list)
    assert isinstance(log[1:], LogSlice)


def test_what_was_walked_over_is_kept_as_long_as_there_is_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "LOG_SLICE_BYTES_MAX", 2)
    reader = Reader(1, 5)
    assert list(reader.slice) == list(reader.slice) == reader.all
    assert reader.reads == [1, 2, 3, 4, 5, 3, 4, 5]
    assert isinstance(reader.slice[:2], list)
    assert isinstance(reader.slice[:3], LogSlice)
    assert reader.slice[1] == reader.all[1]
    assert len(reader.reads) == 8


def test_two_walks_at_once_keep_each_entry_once() -> None:
    reader = Reader(1, 3)
    assert list(zip(reader.slice, reader.slice, strict=True)) == [(entry, entry) for entry in reader.all]
    assert reader.slice[:3] == reader.all


@pytest.mark.parametrize("first", [1, 5])
def test_entries_follow_each_other(first: int) -> None:
    index = LogIndex()
    index.append(first, 1, 10, 0)
    for wrong in (first, first + 2):
        with pytest.raises(ValueError, match=f"entry {wrong} does not follow entry {first}"):
            index.append(wrong, 1, 10, 0)


def test_only_an_index_that_was_reset_begins_anywhere() -> None:
    index = LogIndex()
    index.append(5, 1, 10, 0)
    index.truncate(5)
    with pytest.raises(ValueError, match="entry 6 does not follow entry 4"):
        index.append(6, 1, 10, 0)
    index.append(5, 2, 10, 0)
    assert (index.first, len(index), index.term(5)) == (5, 1, 2)
    index.reset(1)
    index.append(9, 3, 10, 0)
    assert (index.first, index.next, index.term(9)) == (9, 10, 3)


def test_the_place_of_a_removed_entry_is_not_noted() -> None:
    index = LogIndex()
    for number in (5, 6, 7):
        index.append(number, 1, 10, number)
    for number in (4, 5, 7, 8):
        index.put(number, 3, 100 + number)
    assert index.location(5) == EntryLocation(3, 105, 10, 5)
    assert index.location(7) == EntryLocation(3, 107, 10, 7)
    assert index.location(6) == EntryLocation(0, 0, 10, 6), "none yet"


def test_entries_may_be_on_the_disk_only() -> None:
    index = LogIndex()
    index.reset(3, 6)
    for number in (6, 7, 8):
        index.append(number, 1, 10, number)
        index.put(number, 2, number)
    assert (index.first, index.indexed, index.next, len(index)) == (3, 6, 9, 6)
    assert index.bytes_between(4, 8) == 20
    index.forget(7)
    assert (index.first, index.indexed, index.location(8)) == (3, 7, EntryLocation(2, 8, 10, 8))
    index.drop(5)
    assert (index.first, index.indexed, index.next) == (5, 7, 9)
    index.truncate(6)
    assert (index.first, index.indexed, index.next) == (5, 6, 6)
    index.append(6, 2, 10, 1)
    assert (index.term(6), len(index)) == (2, 2)
    index.drop(9)
    assert (index.first, index.indexed, index.next, len(index)) == (9, 9, 9, 0)
    index.reset(1)
    index.append(20, 3, 10, 0)
    assert (index.first, index.indexed, index.next) == (20, 20, 21)


def test_nothing_goes_before_the_first_entry() -> None:
    index = LogIndex()
    for number in (5, 6, 7):
        index.append(number, number, 10, 0)
    for number in (4, 5):
        index.drop(number)
        assert (index.first, len(index)) == (5, 3)
    index.drop(7)
    assert (index.first, len(index), index.term(7)) == (7, 1, 7)


def test_a_cache_keeps_the_newest_half_when_it_is_more_than_full() -> None:
    cache = LogCache(1200)
    for index in range(1, 7):
        cache.add(b"", index, 1)            # 200 bytes each
        cache.evict()
        assert cache.first == 1
    cache.add(b"", 7, 1)
    cache.evict()
    assert [index for _, index, _ in cache.entries] == [5, 6, 7]
    assert cache.first == 5
    cache.add(bytes(5000), 8, 1)
    cache.evict()
    assert [index for _, index, _ in cache.entries] == [8]
    cache.truncate(8)
    cache.add(b"", 8, 2)
    cache.evict()
    assert (cache.first, cache.entries) == (8, [(b"", 8, 2)])
