"""The newest events that this node recorded, for subscribers that come back (spec/events 3.1)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from sockpqd.core import Event
from sockpqd.gateway.events.lines import line_of
from sockpqd.gateway.limits import EVENT_HISTORY_BYTES, EVENT_HISTORY_MAX, EVENT_PIECE_MAX

Recorded = tuple[Event, bytes]      # with its line


class EventHistory:
    """Recorded events in rising number, the oldest of which are forgotten; `newest` is the number of the newest event.

    A type was recorded without a gap since the number in `_since`.
    """

    def __init__(self, newest: int = 0) -> None:
        self.newest = newest
        self.replaced = 0                   # the number of the newest event when the state became another one
        self._since: dict[str, int] = {}
        self._events: list[Recorded] = []
        self._first = 0                     # those before it are forgotten
        self._bytes = 0
        self._forgotten = 0                 # the number of the newest one forgotten

    def record(self, types: Iterable[str], newest: int) -> None:
        """Keep events of these types from now on; `newest`: the number of the newest event."""
        self.newest = newest
        self._since = {event_type: self._since.get(event_type, newest) for event_type in types}

    def add(self, events: Sequence[Event]) -> list[Recorded]:
        """Add the next events; returns them with their lines."""
        recorded = [(event, line_of(event)) for event in events]
        self._events += recorded
        self._bytes += sum(len(line) for _, line in recorded)
        while self._bytes > EVENT_HISTORY_BYTES or len(self._events) - self._first > EVENT_HISTORY_MAX:
            event, line = self._events[self._first]
            self._bytes -= len(line)
            self._forgotten = event.seq
            self._first += 1
        if self._first * 2 > len(self._events):
            del self._events[:self._first]
            self._first = 0
        return recorded

    def replace(self, newest: int) -> None:
        """Forget all events, after a snapshot was installed: the events in between are unknown."""
        self.newest = self.replaced = newest
        self._since = dict.fromkeys(self._since, newest)
        self._events, self._first, self._bytes = [], 0, 0

    def reaches_back_to(self, seq: int, types: Iterable[str]) -> bool:
        """Return whether all events of these types after `seq` are kept; `seq` is not beyond the newest."""
        if seq == self.newest:
            return True
        return seq >= self._forgotten and all(
            self._since.get(event_type, self.newest) <= seq for event_type in types
        )

    def after(self, seq: int) -> list[Recorded]:
        """Return the first events after this number, a limited number of them; empty if there are no more."""
        at = bisect_right(self._events, seq, self._first, key=_seq)
        return self._events[at:at + EVENT_PIECE_MAX]

    def all_after(self, seq: int) -> list[Recorded]:
        """Return all events after this number."""
        return self._events[bisect_right(self._events, seq, self._first, key=_seq):]


def _seq(recorded: Recorded) -> int:
    return recorded[0].seq
