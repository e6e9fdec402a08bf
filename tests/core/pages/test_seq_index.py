"""The index of pages by seq against a dict."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.pages.seq_index import CLEARED, SPAN_BITS, SeqIndex


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


@pytest.mark.parametrize("seed", range(5))
def test_it_forgets_pages_that_were_dropped(seed: int) -> None:
    random = Random(seed)
    index = SeqIndex()
    seqs = [(number % 40 << SPAN_BITS) + number for number in range(8000)]
    random.shuffle(seqs)
    pages = {page: seqs[page * 20:page * 20 + 20] for page in range(400)}
    for page, its_seqs in pages.items():
        index.add(its_seqs, page)
    order = random.sample(sorted(pages), len(pages))
    for number, page in enumerate(order[:-1]):
        if random.random() < 0.2:
            index.remove(pages.pop(page))
        else:
            index.drop(page, len(pages.pop(page)))
        assert len(index) == 20 * len(pages)
        if number % 50 == 0:
            index = again(index)
            assert held(index) == len(index)
        assert held(index) <= 3 * len(index) + 400, "dead ones do not pile up"
    kept, = pages
    assert all(index.find(seq) == kept for seq in pages[kept])
    index.remove(pages[kept])
    assert list(index.spans()) == []
    assert held(index) == 0


def held(index: SeqIndex) -> int:
    """Return how many seqs are in memory, dead ones too."""
    return sum(len(lows) for lows, _ in index._spans.values())


def test_no_drop_looks_at_all_seqs() -> None:
    index = SeqIndex()
    for page in range(1000):
        index.add(range(page << SPAN_BITS, (page << SPAN_BITS) + 10), page)
    before = held(index)
    for page in range(999):
        index.drop(page, 10)
        before, after = held(index), before
        assert after - before <= 10 * CLEARED


def again(index: SeqIndex) -> SeqIndex:
    """Return the same index in a later process."""
    other = SeqIndex()
    for span in index.spans():
        other.restore(*span)
    assert sorted(other.spans()) == sorted(index.spans())
    return other


@pytest.mark.parametrize(("page", "each"), [(1 << 31, 8), ((1 << 32) - 1, 8), (1 << 32, 12), (1 << 40, 12)])
def test_it_takes_few_bytes_for_each(page: int, each: int) -> None:
    index = SeqIndex()
    index.add(range(1000), page)
    assert sum(len(lows) + len(pages) for _, lows, pages in index.spans()) == 1000 * each


@pytest.mark.parametrize("seq", [5, 50])
def test_pages_may_have_great_numbers_behind_small_ones(seq: int) -> None:
    index = SeqIndex()
    index.add(range(10, 20), 1)
    index.add([seq], 1 << 40)
    for one in (index, again(index)):
        assert [one.find(known) for known in (9, 10, 19, seq)] == [None, 1, 1, 1 << 40]


@pytest.mark.parametrize(("lows", "pages"), [(b"", b""), (b"abcd", b""), (b"abc", bytes(8)), (bytes(8), bytes(12))])
def test_what_is_no_span_is_refused(lows: bytes, pages: bytes) -> None:
    with pytest.raises(ValueError, match=r"."):
        SeqIndex().restore(0, lows, pages)


def test_a_span_comes_once() -> None:
    index = SeqIndex()
    index.restore(7, bytes(4), bytes(8))
    with pytest.raises(ValueError, match="not a span"):
        index.restore(7, bytes(4), bytes(8))
