"""Items as frames of a snapshot: their names and counts; the frames of their jobs come before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sockpqd.core import limits
from sockpqd.core.ops.jobs import HoldThen
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.frames import check
from sockpqd.core.store.items.holds import Hold
from sockpqd.core.store.items.item import Fate, Item
from sockpqd.core.store.items.items import Items

_NO_HOLD = Hold(0, 0, HoldThen.CANCEL)
_NO_FATE = Fate()


def item_frames(items: Items) -> Iterator[frames.ItemRows]:
    """Yield the frames of the items that have more state than their jobs."""
    known = (_row(items.by_name[name]) for name in sorted(items.by_name) if _is_known(items.by_name[name]))
    while rows := list(islice(known, limits.FRAME_JOBS_MAX)):
        yield frames.ItemRows(rows)


def _is_known(item: Item) -> bool:
    return item.done > 0 or item.hold is not None or item.owner is not None or item.fate is not None


def _row(item: Item) -> frames.ItemRow:
    hold, fate = item.hold or _NO_HOLD, item.fate or _NO_FATE
    return frames.ItemRow(
        item.name, item.done, hold.deadline_ms, hold.length_ms, hold.then, hold.graced, item.owner,
        fate.cancelling, fate.reason, fate.tainted, fate.cancelled,
    )


class ItemBuilder:
    """Restores items from their rows, after their jobs."""

    def __init__(self, items: Items) -> None:
        self._items = items
        self._last = ""

    def add(self, row: frames.ItemRow) -> None:
        """Restore the next item. Raises SnapshotError."""
        check(self._last < row.name, "items are not in order")
        self._last = row.name
        item = self._items.by_name.get(row.name)
        if item is None:
            check(row.hold_ends_ms > 0, "an item without jobs")
            item = self._items.open(row.name)
        item.done, item.owner = row.done, row.owner
        if row.cancelling or row.tainted or row.cancelled:
            item.fate = Fate(row.cancelling, row.reason, row.tainted, row.cancelled)
        check(row.cancelling or row.reason is None, "a reason for nothing")
        if row.cancelling:
            self._items.mark(item)
        check((row.hold_ends_ms > 0) == (row.hold_ms > 0), "a hold without time")
        if row.hold_ends_ms:
            item.hold = Hold(row.hold_ends_ms, row.hold_ms, row.hold_then, row.hold_graced)
            self._items.holds.set(row.name, item.hold)
        check(len(self._items.holds) <= limits.HOLDS_MAX, "too many items are held")
        check(_is_known(item), "an item of which nothing is known")

    def end(self) -> None:
        """Settle all items after the last frame."""
        for item in self._items.by_name.values():
            item.failed = item.lost > 0
