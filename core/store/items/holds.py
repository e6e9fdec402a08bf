"""Holds of items (ITEM HOLD): while an item is held it does not end, no matter what happens to its jobs."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core import limits
from sockpqd.core.ops.jobs import HoldThen
from sockpqd.core.store.timer_index import TimerIndex


class Hold(Struct, gc=False, eq=False):
    """The hold of one item. Only its deadline changes, with its grace; any other change makes a new object."""

    deadline_ms: int            # replicated time at which it ends by itself
    length_ms: int
    then: HoldThen
    graced: bool = False        # the failover grace is used up


class Holds:
    """All holds by item, and the next one to end."""

    __slots__ = ("_by_item", "_ends")

    def __init__(self) -> None:
        self._by_item: dict[str, Hold] = {}
        self._ends: TimerIndex[tuple[int, str]] = TimerIndex(limits.LEASE_BITS)     # (deadline_ms, item)

    def __len__(self) -> int:
        return len(self._by_item)

    @property
    def items(self) -> list[str]:
        """The names of the items that are held now."""
        return list(self._by_item)

    def set(self, item: str, hold: Hold | None) -> None:
        """Set the hold of the item, replacing any earlier one; None removes it."""
        before = self._by_item.pop(item, None)
        if before is not None:
            self._ends.remove((before.deadline_ms, item))
        if hold is not None:
            self._by_item[item] = hold
            self._ends.add((hold.deadline_ms, item))

    @property
    def first_ms(self) -> int:
        """The time at which the next one ends; beyond all times if there is none."""
        return self._ends.first_ms

    def next_due_ms(self) -> int | None:
        """Return the time of the next check for expired holds; None if there are no holds."""
        return self._ends.next_due_ms()

    def first_due(self, clock_ms: int) -> str | None:
        """Return the item whose hold is the first to end, if its time has come."""
        due = self._ends.first_due(clock_ms)
        return None if due is None else due[1]

    def extend(self, from_ms: int, grace_ms: int, *, by_length: bool = False, once: bool = True) -> None:
        """Extend holds that end before `from_ms` + `grace_ms` to that time, like leases (Leases.extend)."""
        extended = False
        for _, item in self._ends:
            hold = self._by_item[item]
            until_ms = from_ms + (min(grace_ms, hold.length_ms) if by_length else grace_ms)
            if (once and hold.graced) or hold.deadline_ms >= until_ms:
                continue
            hold.deadline_ms = until_ms
            hold.graced = hold.graced or once
            extended = True
        if extended:
            self._ends.replace((hold.deadline_ms, item) for item, hold in self._by_item.items())

    def postpone(self, by_ms: int) -> None:
        """Let all holds end this much later."""
        for hold in self._by_item.values():
            hold.deadline_ms += by_ms
        self._ends.replace((hold.deadline_ms, item) for item, hold in self._by_item.items())
