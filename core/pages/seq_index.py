"""An index of the jobs outside memory, from seq to page number; 8 bytes for each job, 12 beyond 2^32 pages.

Seqs begin with the time of a Put; the seqs of two seconds share an array, so that an insertion moves few others.

The seqs in a page that is dropped unread are unknown. They stay as dead entries until these outnumber the live ones;
then each further page that is dropped clears some spans, so that no step takes long.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Collection, Iterator, Set

SPAN_BITS = 21
CLEARED = 4             # seqs that are looked at for each that is dropped, while dead ones are cleared
_LOW = (1 << SPAN_BITS) - 1
_SHORT_MAX = 2**32 - 1
_Span = tuple["array[int]", "array[int]"]


class SeqIndex:
    """Pages by seq. `find` may return a page that was dropped."""

    __slots__ = ("_alive", "_clearing", "_dead", "_dropped", "_sought", "_spans")

    def __init__(self) -> None:
        self._nothing()

    def _nothing(self) -> None:
        self._spans: dict[int, _Span] = {}      # seq >> SPAN_BITS -> its other bits, pages
        self._alive = 0
        self._dead = 0                          # seqs that are still here though their pages were dropped,
        self._dropped: set[int] = set()         # these pages,
        self._sought: set[int] = set()          # those of which the seqs are being looked for,
        self._clearing: list[int] = []          # and the spans in which they still may be

    def add(self, seqs: Collection[int], page: int) -> None:
        """Record that the jobs with these new seqs are in this page."""
        for seq in seqs:
            self.add_one(seq, page)

    def add_one(self, seq: int, page: int) -> None:
        """Record that the job with this new seq is in this page."""
        self._alive += 1
        span = self._spans.get(seq >> SPAN_BITS)
        if span is None:
            span = self._spans[seq >> SPAN_BITS] = (array("I"), array("I"))
        lows, pages = span
        if page > _SHORT_MAX and pages.typecode == "I":
            pages = array("Q", pages)
            self._spans[seq >> SPAN_BITS] = lows, pages
        low = seq & _LOW
        if not lows or lows[-1] < low:
            lows.append(low)
            pages.append(page)
        else:
            at = bisect_left(lows, low)
            lows.insert(at, low)
            pages.insert(at, page)

    def remove(self, seqs: Collection[int]) -> None:
        """Remove these seqs, which must be here; their jobs have left their pages."""
        for seq in seqs:
            lows, pages = self._spans[seq >> SPAN_BITS]
            at = bisect_left(lows, seq & _LOW)
            assert lows[at] == seq & _LOW
            del lows[at], pages[at]
            if not lows:
                del self._spans[seq >> SPAN_BITS]
        self._alive -= len(seqs)
        if self._dead and not self._alive:
            self._nothing()

    def drop(self, page: int, count: int) -> None:
        """Record that the page was dropped with `count` of the jobs here; none of their seqs may be added again."""
        self._alive -= count
        self._dead += count
        self._dropped.add(page)
        if not self._alive:
            self._nothing()
        elif self._clearing or self._dead > self._alive:
            self._clear(CLEARED * count)

    def _clear(self, seqs_min: int) -> None:
        """Clear dead seqs in enough spans to inspect at least `seqs_min` seqs."""
        if not self._clearing:
            self._clearing = list(self._spans)
            self._sought, self._dropped = self._dropped, set()
        while self._clearing and seqs_min > 0:
            number = self._clearing.pop()
            span = self._spans.get(number)
            if span is not None:
                seqs_min -= len(span[0])
                self._clear_span(number, span)
        if not self._clearing:
            self._sought = set()

    def _clear_span(self, number: int, span: _Span) -> None:
        kept = _without(span, self._sought)
        self._dead -= len(span[0]) - len(kept[0])
        if kept[0]:
            self._spans[number] = kept
        else:
            del self._spans[number]

    def find(self, seq: int) -> int | None:
        """Return the page with the job with this seq; None if there is none."""
        span = self._spans.get(seq >> SPAN_BITS)
        if span is None:
            return None
        lows, pages = span
        at = bisect_left(lows, seq & _LOW)
        return pages[at] if at < len(lows) and lows[at] == seq & _LOW else None

    def __len__(self) -> int:
        return self._alive

    def spans(self, without: Set[int] = frozenset()) -> Iterator[tuple[int, bytes, bytes]]:
        """Yield the whole index, in a form for `restore`, except for jobs in the pages `without`."""
        gone = self._dropped | self._sought | without
        for number, span in self._spans.items():
            lows, pages = _without(span, gone) if gone else span
            if lows:
                yield number, lows.tobytes(), pages.tobytes()

    def restore(self, span: int, lows: bytes, pages: bytes) -> int:
        """Add what `spans` has yielded; returns the greatest page in it. Raises ValueError if it is malformed."""
        seqs, numbers = array("I", lows), array("I" if len(pages) == len(lows) else "Q", pages)
        if span in self._spans or len(seqs) != len(numbers) or not seqs:
            raise ValueError("not a span of an index")
        self._spans[span] = seqs, numbers
        self._alive += len(seqs)
        return max(numbers)


def _without(span: _Span, gone: Set[int]) -> _Span:
    lows, pages = span
    kept = [at for at, page in enumerate(pages) if page not in gone]
    return array("I", [lows[at] for at in kept]), array(pages.typecode, [pages[at] for at in kept])
