"""When to look at which session: cheap for the many whose end moves on before it comes.

The end of a session moves with every use, so it is not sorted anew each time: a session is filed under a time at which
it cannot have ended before. When that time draws near the session is looked at, and most have moved on. They are filed
in spans of a second, unsorted, so that a hundred thousand can be looked at in one entry (after an outage, say); only
those that end in the span that has begun are sorted.

Where a session is filed says nothing that the session itself does not say, so it is no part of the state.
"""

from __future__ import annotations

from collections.abc import Mapping

from sortedcontainers import SortedList

from core.limits import LEASE_BITS, SESSION_SPAN_BITS
from core.store.session import Session


class Calendar:
    """Sessions by the time under which they are filed."""

    __slots__ = ("_by_number", "_firsts", "_order", "_soon", "_spans")

    def __init__(self, by_number: Mapping[int, Session]) -> None:
        """`by_number` has all sessions in it that are filed."""
        self._by_number = by_number
        self._soon: SortedList = SortedList()                   # (filed_ms, number) of those in a span that has begun
        self._spans: dict[int, dict[int, Session]] = {}         # by the number of the span, by number
        self._order: SortedList = SortedList()                  # the numbers of the spans
        self._firsts: dict[int, int] = {}                       # of each span: nobody in it is filed under less

    def file(self, session: Session) -> None:
        """Look at the session when its deadline has come."""
        session.filed_ms = deadline_ms = session.deadline_ms
        session.soon = False
        number = deadline_ms >> SESSION_SPAN_BITS
        span = self._spans.get(number)
        if span is None:
            span = self._spans[number] = {}
            self._order.add(number)
            self._firsts[number] = deadline_ms
        elif deadline_ms < self._firsts[number]:
            self._firsts[number] = deadline_ms
        span[session.number] = session

    def remove(self, session: Session) -> None:
        """The session is not filed any more."""
        if session.soon:
            self._soon.remove((session.filed_ms, session.number))
            return
        number = session.filed_ms >> SESSION_SPAN_BITS
        span = self._spans[number]
        del span[session.number]
        if not span:
            del self._spans[number]
            del self._firsts[number]
            self._order.remove(number)

    def next_due_ms(self) -> int | None:
        """A time before which `first_due` has nothing to give; None when no session is filed."""
        filed_ms = [self._soon[0][0]] if self._soon else []
        if self._order:
            filed_ms.append(self._firsts[self._order[0]])
        return ((min(filed_ms) >> LEASE_BITS) + 1) << LEASE_BITS if filed_ms else None

    def first_due(self, clock_ms: int) -> Session | None:
        """The first session in the order (deadline, number), if it is over: never early, at most 16 ms late."""
        if self._order and self._order[0] <= clock_ms >> SESSION_SPAN_BITS:
            self._begin_spans(clock_ms >> SESSION_SPAN_BITS)
        soon = self._soon
        while soon and soon[0][0] >> LEASE_BITS < clock_ms >> LEASE_BITS:
            filed_ms, number = soon[0]
            session = self._by_number[number]
            if session.deadline_ms == filed_ms:
                return session
            del soon[0]
            self.file(session)
            self._begin_spans(clock_ms >> SESSION_SPAN_BITS)
        return None

    def _begin_spans(self, last: int) -> None:
        """The spans up to `last` have begun: sort those that end in them."""
        order = self._order
        ending: list[tuple[int, int]] = []
        while order and order[0] <= last:
            number = order.pop(0)
            del self._firsts[number]
            for session in self._spans.pop(number).values():
                if session.deadline_ms >> SESSION_SPAN_BITS == number:
                    session.filed_ms = session.deadline_ms
                    session.soon = True
                    ending.append((session.deadline_ms, session.number))
                else:
                    self.file(session)
        self._soon.update(ending)
