"""The figures of an item, as ITEM STAT and ITEM LIST show them."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.store.items.item import Item


class ItemCounts(Struct, gc=False, frozen=True):
    """The number of jobs of an item in each state, and of those that have ended since it began."""

    ready: int          # without those that are DEAD
    delayed: int
    running: int
    dead: int
    buried: int
    done: int
    cancelled: int      # jobs that ITEM CANCEL has removed
    held: bool
    cancelling: bool
    waiters: int        # jobs that still wait for the item


class ItemSummary(Struct, gc=False, frozen=True):
    """The line of ITEM LIST for an item."""

    name: str
    unfinished: int     # jobs
    dead: int           # of which DEAD or BURIED
    done: int           # as in ItemCounts
    held: bool
    cancelling: bool


def counts_of(item: Item, waiters: int) -> ItemCounts:
    """Return the figures of the item, for which `waiters` jobs wait. Visits each queue in which it has jobs."""
    delayed = running = 0
    for item_queue in item.by_queue.values():
        delayed += item_queue.deferred
        running += item_queue.running
    dead = 0 if item.dead is None else item.dead.size
    buried = 0 if item.buried is None else item.buried.size
    ready = item.unfinished - delayed - running - dead - buried
    return ItemCounts(
        ready, delayed, running, dead, buried, item.done,
        0 if item.fate is None else item.fate.cancelled, item.hold is not None, item.cancelling, waiters,
    )


def summary_of(item: Item) -> ItemSummary:
    """Return the line of ITEM LIST for the item."""
    return ItemSummary(item.name, item.unfinished, item.lost, item.done, item.hold is not None, item.cancelling)
