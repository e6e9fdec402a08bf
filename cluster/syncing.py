"""The times at which a node syncs its journal, and at which its loop waits for that.

Before a follower answers, everything is durable. A leader goes on while its disk works on a large frame: what it sends
promises nothing new, and its own copy does not count yet. But nothing is committed in that time. With a disk that takes
too long it must fall silent, as with one that is too slow for small entries, so that another node can lead.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader.pipelining import Pipelining
from sockpqd.cluster.leader.proposer import Proposer


class Syncing:
    """Syncs the journal of one node. All times are seconds of `monotonic()`.

    `patience_s`: how long a leader continues before everything is durable.
    """

    def __init__(self, journal: Journal, proposer: Proposer, monotonic: Callable[[], float], patience_s: float) -> None:
        self._journal = journal
        self.pipelining = Pipelining(proposer)
        self._monotonic = monotonic
        self._patience_s = patience_s
        self._durable_at = float("-inf")        # when everything was last durable
        self._wrote_at = float("-inf")          # when there was last something to write

    def hurry(self) -> None:
        """Sync a new commit index in this turn, even by itself."""
        self._wrote_at = float("-inf")

    def wait(self, now: float) -> bool:
        """Make everything durable before returning. Raises NoRoom and OSError."""
        self._journal.sync(alone=self._commit_index_due(now))
        self._durable_at = now
        return True

    def lead(self, now: float) -> bool:
        """Leader: like wait(), but do not wait for a large frame; returns whether everything is durable."""
        if now - self._durable_at >= self._patience_s:
            return self.wait(now)
        journal, pipelining = self._journal, self.pipelining
        begun = self._monotonic() if journal.unsynced else None
        from_bytes = pipelining.background_bytes(now)
        if not journal.sync_in_background(alone=self._commit_index_due(now), from_bytes=from_bytes):
            return False
        if begun is not None:
            done = self._monotonic()
            pipelining.synced(done - begun, done)
        self._durable_at = now
        return True

    def _commit_index_due(self, now: float) -> bool:
        """Return whether a new commit index is to be synced by itself.

        Between entries it is not, as they take it along and would have to wait.
        """
        if self._journal.unsynced:
            self._wrote_at = now
        return now - self._wrote_at >= limits.COMMIT_INDEX_WAITS_S
