"""Decides when a node writes a snapshot and cuts its journal.

The journals of all nodes become too long at the same entry. Writing a snapshot slows a node down: the child uses CPU
time, and memory pages that change in the meantime are copied. So the nodes begin one after another, and while a
snapshot takes no longer than a node's share of COMPACTION_REST_S, a majority is undisturbed.
"""

from __future__ import annotations

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader.membership import Members
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore


class Compaction:
    """Decides when the node `name` compacts its journal."""

    def __init__(
        self, name: str, members: Members, journal: Journal, store: SnapshotStore, pages: PageFiles,
    ) -> None:
        self._name = name
        self._members = members
        self._journal = journal
        self._store = store
        self._pages = pages
        self._last = float("-inf")              # when the last one began, monotonic seconds
        # The time at which the journal became too long, None while it is not. A journal that is too long at the start
        # is cut at once: a node that is restarted again and again would never reach its place in the order.
        self._long_since: float | None = float("-inf")

    def begins(self, now: float, *, no_room: bool, short: bool = False) -> bool:
        """Return whether it is time for a snapshot, which then counts as begun.

        `now`: monotonic seconds; `no_room`: this node refuses jobs for lack of room; `short`: room is short.
        """
        if self._store.busy or not (self._long() or self._helps(short)):
            self._long_since = None
            return False
        if self._long_since is None:
            self._long_since = now
        due = max(self._last + limits.COMPACTION_REST_S, self._long_since + self._place() * limits.COMPACTION_REST_S)
        if now < due and self._journal.bytes_total <= limits.COMPACTION_BYTES_MAX and not (no_room or short):
            return False
        self._last = now
        return True

    def _long(self) -> bool:
        store = self._store
        if store.names_pages and store.sending:     # the other node will need the entries after what it is sent
            return self._journal.bytes_total > limits.COMPACTION_BYTES_MAX
        long_bytes = max(limits.COMPACTION_BYTES_MIN, limits.COMPACTION_FACTOR * store.usual_bytes)
        if self._journal.bytes_total > long_bytes:
            return True
        return self._journal.last_index - self._store.newest_index > limits.COMPACTION_ENTRIES

    def _helps(self, short: bool) -> bool:
        """Return whether there is little or no room for the next segment and a snapshot would free some."""
        journal = self._journal
        held_bytes = self._pages.held_bytes
        if not self._news or not (journal.can_shrink or held_bytes):
            return False
        if journal.segments.short and journal.segments.scarce:
            return True
        return short and journal.bytes_total + held_bytes > max(self._store.usual_bytes, journal.segments.segment_bytes)

    @property
    def _news(self) -> bool:
        return self._journal.durable_index > self._store.newest_index

    def _place(self) -> float:
        """Return this node's place among the members, from 0 to 1."""
        names = self._members.names
        return names.index(self._name) / len(names) if self._name in names else 0.0
