"""Replaces a damaged file of a running node: the state in memory is intact and is written again.

The node starts a new segment of its journal and writes snapshots until the damaged file holds nothing that it needs;
the file is then removed like any other unneeded one. If the node has to read the damaged part before that, or ends, it
rejoins the others (rejoin.py).
"""

from __future__ import annotations

import logging

from sockpqd.cluster import limits
from sockpqd.cluster.damage.scrubber import Finding
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore

log = logging.getLogger("sockpqd.cluster")


class Repair:
    """The repair in progress, if any. `found`: how many damaged files were found since the start."""

    def __init__(self, journal: Journal, store: SnapshotStore) -> None:
        self.found = 0
        self._journal = journal
        self._store = store
        self._segment = 0                       # the newest damaged one, 0 for none
        self._snapshot = 0
        self._not_before = float("-inf")

    def begin(self, finding: Finding) -> None:
        self.found += 1
        log.error(
            "%s is damaged: %s. The state in memory is intact: this node writes it again and removes the file. Check"
            " its disk and memory: stored data was corrupted.", finding.path, finding.what,
        )
        if finding.segment:
            self._segment = max(self._segment, finding.segment)
            if finding.segment == self._journal.segments.active:
                self._journal.leave_segment()
        else:
            self._snapshot = max(self._snapshot, self._store.newest_index)

    def due(self, now: float, applied: int) -> bool:
        """Return whether to write a snapshot now, which then counts as begun. `applied`: the last entry applied."""
        if not self._segment and not self._snapshot:
            return False
        kept = self._store.kept()
        if self._segment:
            self._journal.release_feeds(self._store.needed_from)
        if self._journal.segments.oldest > self._segment and (not kept or kept[0] > self._snapshot):
            log.info("the damaged files are removed")
            self._segment = self._snapshot = 0
            return False
        if now < self._not_before or self._store.busy or applied <= self._store.newest_index:
            return False
        self._not_before = now + limits.COMPACTION_REST_S
        if self._snapshot:
            self._store.whole_wanted = True     # so that pages of the damaged one are read, or no longer needed
        return True
