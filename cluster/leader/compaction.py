"""When a node writes a snapshot and cuts its journal by itself.

The journals of all nodes become long with the same entry. Writing a snapshot costs the clients of a node time: the work
of the child, and the copies of memory pages that change meanwhile. So one node begins after the other, and as long as a
snapshot takes no longer than a node's share of limits.COMPACTION_REST_S, a majority is undisturbed.
"""

from __future__ import annotations

from cluster import limits
from cluster.leader.membership import Members
from cluster.storage.journal import Journal
from cluster.storage.snapshot_store import SnapshotStore


class Compaction:
    """Looks at the journal of the node `name`."""

    def __init__(self, name: str, members: Members, journal: Journal, store: SnapshotStore) -> None:
        self._name = name
        self._members = members
        self._journal = journal
        self._store = store
        self._last = float("-inf")              # when the last one began, monotonic seconds
        # Since when the journal is to be cut, None: it is not. One that is so at the start does not wait: a node that
        # is started again and again would never come to its place.
        self._long_since: float | None = float("-inf")

    def begins(self, now: float, *, no_room: bool) -> bool:
        """Is it time, and begins one now? `now`: monotonic seconds; `no_room`: this node refuses jobs for that."""
        if self._store.busy or not (self._long() or self._helps()):
            self._long_since = None
            return False
        if self._long_since is None:
            self._long_since = now
        due = max(self._last + limits.COMPACTION_REST_S, self._long_since + self._place() * limits.COMPACTION_REST_S)
        if now < due and self._journal.bytes_total <= limits.COMPACTION_BYTES_MAX and not no_room:
            return False
        self._last = now
        return True

    def _long(self) -> bool:
        long_bytes = max(limits.COMPACTION_BYTES_MIN, limits.COMPACTION_FACTOR * self._store.newest_bytes)
        if self._journal.bytes_total > long_bytes:
            return True
        return self._journal.last_index - self._store.newest_index > limits.COMPACTION_ENTRIES

    def _helps(self) -> bool:
        """Is there no room for the next segment, and would it make some?"""
        journal = self._journal
        return journal.segments.short and journal.segments.scarce and self._news and journal.can_shrink

    @property
    def _news(self) -> bool:
        return self._journal.durable_index > self._store.newest_index

    def _place(self) -> float:
        """Among the members, from 0 to 1."""
        names = self._members.names
        return names.index(self._name) / len(names) if self._name in names else 0.0
