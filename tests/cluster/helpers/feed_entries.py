"""Reads the entries of a journal as a feed does that finds none of them in memory."""

from __future__ import annotations

from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.journal.log_index import Entry


def feed_from(journal: Journal, index: int, bytes_max: int = 1 << 20) -> list[Entry]:
    """Some entries from there on, read from the disk for a feed."""
    if (span := journal.unindexed(index)) is not None:
        with journal.to_index(span) as make:
            journal.keep_index(make(lambda: None))
    stretch = journal.stretch(index, journal.last_index, bytes_max)
    file = journal.segments.open(stretch.segment)
    try:
        return journal.read_stretch(file, stretch)
    finally:
        journal.segments.close_file(file)


def all_for_feeds(journal: Journal, bytes_max: int = 1 << 20) -> list[Entry]:
    """All entries that feeds can have."""
    found: list[Entry] = []
    while (index := journal.oldest_index + len(found)) <= journal.last_index:
        found += feed_from(journal, index, bytes_max)
    return found
