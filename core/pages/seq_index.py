"""Where jobs are that are not in memory: the number of the page of each seq, in 12 bytes.

Seqs begin with the time of a Put; those of two seconds share an array, so a new one moves few others.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Container, Iterable, Iterator

SPAN_BITS = 21
_LOW = (1 << SPAN_BITS) - 1


class SeqIndex:
    """Pages by seq."""

    __slots__ = ("_spans",)

    def __init__(self) -> None:
        self._spans: dict[int, tuple[array[int], array[int]]] = {}      # seq >> SPAN_BITS -> its other bits, pages

    def add(self, seqs: Iterable[int], page: int) -> None:
        """The jobs of these seqs, which are not here, are in this page."""
        spans = self._spans
        for seq in seqs:
            span = spans.get(seq >> SPAN_BITS)
            if span is None:
                span = spans[seq >> SPAN_BITS] = (array("I"), array("Q"))
            lows, pages = span
            low = seq & _LOW
            if not lows or lows[-1] < low:
                lows.append(low)
                pages.append(page)
            else:
                at = bisect_left(lows, low)
                lows.insert(at, low)
                pages.insert(at, page)

    def remove(self, seqs: Iterable[int]) -> None:
        """The jobs of these seqs, which are here, are in no page any more."""
        for seq in seqs:
            lows, pages = self._spans[seq >> SPAN_BITS]
            at = bisect_left(lows, seq & _LOW)
            assert lows[at] == seq & _LOW
            del lows[at], pages[at]
            if not lows:
                del self._spans[seq >> SPAN_BITS]

    def find(self, seq: int) -> int | None:
        """The page with the job of this seq; None: it is in none."""
        span = self._spans.get(seq >> SPAN_BITS)
        if span is None:
            return None
        lows, pages = span
        at = bisect_left(lows, seq & _LOW)
        return pages[at] if at < len(lows) and lows[at] == seq & _LOW else None

    def __len__(self) -> int:
        return sum(len(lows) for lows, _ in self._spans.values())

    def without(self, gone: Container[int]) -> SeqIndex:
        """The same without the jobs that are in these pages."""
        other = SeqIndex()
        for number, (lows, pages) in self._spans.items():
            kept = [at for at, page in enumerate(pages) if page not in gone]
            if kept:
                other._spans[number] = array("I", [lows[at] for at in kept]), array("Q", [pages[at] for at in kept])
        return other

    def spans(self) -> Iterator[tuple[int, bytes, bytes]]:
        """All that is here, for `restore`."""
        for span, (lows, pages) in self._spans.items():
            yield span, lows.tobytes(), pages.tobytes()

    def restore(self, span: int, lows: bytes, pages: bytes) -> None:
        """What `spans` has yielded. Raises ValueError if it is none of that."""
        seqs, numbers = array("I", lows), array("Q", pages)
        if span in self._spans or len(seqs) != len(numbers) or not seqs:
            raise ValueError("not a span of an index")
        self._spans[span] = seqs, numbers
