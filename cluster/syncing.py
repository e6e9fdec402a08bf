"""Decides when a node syncs its journal, and when messages that promise durability are sent.

Before a node votes or acknowledges an entry, its journal is durable. On a fast disk the loop waits for that. On a slow
one, and for large frames, a thread syncs (sync_pace.py decides), and only the messages that promise something wait for
it: those queued before a sync began are sent when it ends; later ones are sent with them if nothing was changed in the
meantime, otherwise after the next sync. Messages that promise nothing are sent at once: a leader's entries, whose own
copy does not count yet, its offer to hand over, and messages forwarded for clients.

The loop waits, whatever the disk, for a new term, a vote and the right to vote: a node that led in a term its disk did
not know could lead in it again after a crash, with other entries. A leader whose disk takes too long must fall silent,
so that another node can lead: then its loop waits. A node also waits when it has many megabytes to write: its disk must
slow down the senders (back-pressure).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.leader.pipelining import Pipelining
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.sync_pace import SyncPace


class Promises(Protocol):
    """The part of a network (driver.Outbox) that holds back messages which promise durability."""

    def flush_appends(self) -> None:
        """Send the queued messages that promise nothing."""

    def hold(self) -> None:
        """Keep the queued messages until release(): what they promise is still being synced."""

    def release(self) -> None:
        """Send the messages kept by hold()."""

    def flush(self) -> None:
        """Send all messages, those kept by hold() first."""


class Syncing:
    """Syncs the journal of one node. All times are seconds of `monotonic()`.

    `patience_s`: how long a leader continues before everything is durable. `hands_over`: leadership is about to move,
    so this leader falls silent only for a single sync that takes so long.
    """

    hands_over = False

    def __init__(
        self, journal: Journal, proposer: Proposer, network: Promises, monotonic: Callable[[], float],
        patience_s: float,
    ) -> None:
        self._journal = journal
        self._network = network
        self.pipelining = Pipelining(proposer)
        self.pace = SyncPace()
        self._monotonic = monotonic
        self._patience_s = patience_s
        self._durable_at = float("-inf")        # everything that was changed before is durable
        self._began_at = float("-inf")          # when the sync in the thread began
        self._last_s = 0.0                      # how long the last sync took
        self._wrote_at = float("-inf")          # when there was last something to write

    def hurry(self) -> None:
        """Sync a new commit index in this turn, even by itself."""
        self._wrote_at = float("-inf")

    def poll(self) -> None:
        """Complete a background sync that has ended, and send the messages that waited for it.

        Messages that were queued during the sync leave as well if nothing was changed meanwhile: what they promise was
        synced with the rest. The next turn may be a heartbeat away.
        """
        journal = self._journal
        if journal.syncing is not None and journal.poll_sync():
            self._took(journal.sync_s)
            self._durable_at = self._began_at
            if journal.unsynced:
                self._network.release()
            else:
                self._network.flush()

    def _took(self, seconds: float) -> None:
        self._last_s = seconds
        self.pace.took(seconds)

    def lags(self, now: float) -> bool:
        """Return whether the disk is slow again and again: another leader would make clients wait less.

        That is the case when the sync in the thread and the one before together take nearly as long as the patience. A
        sync that has only begun proves nothing yet.
        """
        if self._journal.syncing is None:
            return False
        under_way_s = now - self._began_at
        return (
            under_way_s >= limits.LAGGING_SYNC_SHARE * self._patience_s
            and under_way_s + self._last_s >= limits.LAGGING_SHARE * self._patience_s
        )

    def sync(self, now: float, *, leads: bool) -> None:
        """Sync all changes, or begin to, and send the messages that may leave. Raises NoRoom and OSError.

        `leads`: this node is the leader.
        """
        journal, network = self._journal, self._network
        if journal.syncing is not None:
            self.poll()
        since = max(self._durable_at, self._began_at) if self.hands_over else self._durable_at
        impatient = leads and now - since >= self._patience_s
        if impatient or journal.binds or journal.unsynced_bytes >= limits.UNSYNCED_BYTES_MAX:
            journal.sync(alone=self._commit_index_due(now))
        elif journal.syncing is not None:
            network.flush_appends()
            return
        else:
            begun = self._monotonic() if journal.unsynced else None
            alone = self._commit_index_due(now)
            if not journal.sync_in_background(alone=alone, from_bytes=self.pace.background_bytes):
                self._began_at = now
                network.hold()
                network.flush_appends()
                return
            if begun is not None:
                took_s = self._monotonic() - begun
                self._took(took_s)
                self.pipelining.waited(took_s)
        self._durable_at = now
        network.flush()

    def _commit_index_due(self, now: float) -> bool:
        """Return whether a new commit index is to be synced by itself.

        While there are entries it is not: they carry it, and would have to wait for its sync.
        """
        if self._journal.unsynced:
            self._wrote_at = now
        return now - self._wrote_at >= limits.COMMIT_INDEX_WAITS_S
