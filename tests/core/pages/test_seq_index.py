"""The index of pages by seq against a dict."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.pages.seq_index import SPAN_BITS, SeqIndex


@pytest.mark.parametrize("seed", range(5))
def test_it_finds_what_was_added_and_not_removed(seed: int) -> None:
    random = Random(seed)
    index = SeqIndex()
    known: dict[int, int] = {}
    base = 1_700_000_000_000 << 10
    for page in range(300):
        seqs = {base + (random.randrange(5) << SPAN_BITS) + random.randrange(2000) for _ in range(5)} - known.keys()
        index.add(seqs, page)
        known.update(dict.fromkeys(seqs, page))
        gone = random.sample(sorted(known), random.randrange(min(9, len(known) + 1)))
        index.remove(gone)
        for seq in gone:
            del known[seq]
        if page % 100 == 50:
            index = again(index)
    for span in range(-1, 6):
        for low in range(-1, 2001):
            seq = base + (span << SPAN_BITS) + low
            assert index.find(seq) == known.get(seq)
    index.remove(list(known))
    assert list(index.spans()) == []


def again(index: SeqIndex) -> SeqIndex:
    """The same index in a later process."""
    other = SeqIndex()
    for span in index.spans():
        other.restore(*span)
    assert sorted(other.spans()) == sorted(index.spans())
    return other


def test_it_takes_twelve_bytes_for_each() -> None:
    index = SeqIndex()
    index.add(range(1000), 1 << 40)
    assert sum(len(lows) + len(pages) for _, lows, pages in index.spans()) == 12_000


@pytest.mark.parametrize(("lows", "pages"), [(b"", b""), (b"abcd", b""), (b"abc", bytes(8)), (bytes(8), bytes(8))])
def test_what_is_no_span_is_refused(lows: bytes, pages: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        SeqIndex().restore(0, lows, pages)


def test_a_span_comes_once() -> None:
    index = SeqIndex()
    index.restore(7, bytes(4), bytes(8))
    with pytest.raises(ValueError, match="not a span"):
        index.restore(7, bytes(4), bytes(8))
