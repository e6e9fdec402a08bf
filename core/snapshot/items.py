"""Items as frames of a snapshot: their names and counts; the frames of their jobs come before."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from sockpqd.core import limits
from sockpqd.core.snapshot import frames
from sockpqd.core.snapshot.frames import check
from sockpqd.core.store.items.item import Item
from sockpqd.core.store.items.items import Items


def item_frames(items: Items) -> Iterator[frames.ItemRows]:
    """The frames of the items that have more state than their jobs."""
    known = (_row(items.by_name[name]) for name in sorted(items.by_name) if _is_known(items.by_name[name]))
    while rows := list(islice(known, limits.FRAME_JOBS_MAX)):
        yield frames.ItemRows(rows)


def _is_known(item: Item) -> bool:
    return item.done > 0


def _row(item: Item) -> frames.ItemRow:
    return frames.ItemRow(item.name, item.done)


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
            raise frames.SnapshotError("inconsistent snapshot: an item without jobs")
        item.done = row.done
        check(_is_known(item), "an item of which nothing is known")

    def end(self) -> None:
        """Settle all items after the last frame."""
        for item in self._items.by_name.values():
            item.failed = item.lost > 0
