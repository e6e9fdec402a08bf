"""The events of an entry: all of them are counted, and events of the recorded types are kept as lines.

The count is part of the state: it advances equally on every node and in every replay, whether or not anybody listens.
So each transition that is an event adds one, and only the kept lines depend on the listeners, on this node alone.

Queues and items finished by an operation are reported after its own events: first the queues, then the items, then
the items that got their first DEAD or BURIED job, then the depths that were crossed (spec/events 2.2). Until then they
are in `endings`; State.end_operation empties it.
"""

from __future__ import annotations

from sockpqd.core.ops.events import Event

ENDED_QUEUE, ENDED_ITEM, FAILED_ITEM, WATCHED_QUEUE = range(4)      # in the order in which an operation tells of them


class EventLog:
    """The counter and the events of the current entry."""

    __slots__ = ("endings", "of_entry", "recorded", "seq")

    def __init__(self) -> None:
        self.seq = 0                                    # of the newest event
        self.recorded: frozenset[str] = frozenset()     # types somebody listens to; not part of the state
        self.of_entry: list[Event] = []                 # events of these types in the present entry
        self.endings: list[tuple[int, str]] = []        # of the present operation

    def tell(self, event_type: str, name: str, *words: int | str) -> None:
        """Count an event, and record it."""
        self.seq += 1
        if event_type in self.recorded:
            self.of_entry.append(Event(self.seq, event_type, name, words))

    def hears(self, event_type: str) -> bool:
        """Return whether this node records events of this type; others may not."""
        return event_type in self.recorded

    def count(self, count: int) -> None:
        """Count this many events of a type that is not recorded."""
        self.seq += count

    def record(self, event_type: str, name: str, *words: int | str) -> None:
        """Record an event that has been counted already, if its type is recorded."""
        if event_type in self.recorded:
            self.of_entry.append(Event(self.seq, event_type, name, words))
