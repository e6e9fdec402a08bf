"""The open groups of a queue by the places of their first jobs: for SCHED GROUPS, where there are many."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct, field
from sortedcontainers import SortedList

from sockpqd.core.store.job import Job

# The order of the jobs of a queue: rank, when, seq; and the group.
_Entry = tuple[int, int, int, str]


class PlaceOrder(Struct, gc=False, eq=False):
    """Groups in the order of their first jobs."""

    _order: SortedList = field(default_factory=SortedList)
    _entries: dict[str, _Entry] = field(default_factory=dict)

    @property
    def first(self) -> str | None:
        """The group whose first job comes first; None: there is no group."""
        return self._order[0][3] if self._order else None

    @property
    def size(self) -> int:
        """The number of groups that have a place."""
        return len(self._order)

    def names(self) -> Iterator[str]:
        """Return the groups in their order."""
        return (entry[3] for entry in self._order)

    def set(self, group: str, first: Job | None) -> None:
        """Set the first job of the group; None removes the group."""
        entry = None if first is None else (first.rank, first.when, first.seq, group)
        before = self._entries.get(group)
        if entry == before:
            return
        if before is not None:
            self._order.remove(before)
        if entry is None:
            del self._entries[group]
        else:
            self._entries[group] = entry
            self._order.add(entry)
