"""Leader: sends the state to a follower whose disk has no room for the entries it lacks, if the state is smaller.

Its disk may be full of jobs that were done long ago. To receive the entries that say so, it needs room in its journal,
which only a snapshot of its own could free, and for that it has no room either. The state of the others may be very
small, and replaces all of the follower's data.

If nothing else helps for a long time, a state that is larger than the entries is sent as well: with its own state on
the disk the follower may have no room for either (Capacity.give_up_state).
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.transport import RaftTransport
from sockpqd.cluster.snapshots.snapshot_store import SnapshotStore

log = logging.getLogger("sockpqd.cluster")


class Stuck:
    """A follower without room. `applied`: its last entry; `since`: when it had reached that, monotonic seconds."""

    def __init__(self, applied: int, since: float) -> None:
        self.applied = applied
        self.since = since
        self.sent = False       # a snapshot was sent, or is being written
        self.patience_s = limits.STATE_ANYWAY_S
        self.anyway_at = since + self.patience_s    # when it is sent a state of any size


class StateForEntries:
    """Sends the state to followers that have no room for entries. `pages`: the page files of this node.

    `state_bytes`: returns the approximate size of the whole state.
    """

    def __init__(
        self, state_bytes: Callable[[], int], journal: Journal, store: SnapshotStore, transport: RaftTransport,
        pages: PageFiles,
    ) -> None:
        self._state_bytes = state_bytes
        self._journal = journal
        self._store = store
        self._transport = transport
        self._pages = pages
        self._stuck: dict[str, Stuck] = {}
        self._look_at = float("-inf")

    def look(self, now: float) -> None:
        """Check once a second which followers are stuck, and send them the state. `now`: monotonic seconds."""
        if now < self._look_at:
            return
        self._look_at = now + limits.ROOM_LOOK_S
        for peer in self._transport.peers.values():
            info, commit = peer.info, self._transport.context.replica.commit_index
            if not peer.up or info is None or not info.full or info.applied >= commit:
                self._stuck.pop(peer.name, None)
                continue
            stuck = self._stuck.get(peer.name)
            if stuck is None or stuck.applied != info.applied:
                self._stuck[peer.name] = Stuck(info.applied, now)
            elif now - stuck.since >= limits.STATE_FOR_ENTRIES_S and peer.sending is None:
                self._help(peer, stuck, now)

    def _is_less(self, stuck: Stuck) -> bool:
        """Return whether the state is smaller than the entries that the follower lacks."""
        return self._state_bytes() <= max(
            limits.STATE_FOR_ENTRIES_BYTES, self._journal.bytes_from(stuck.applied + 1))

    def _has_room(self) -> bool:
        """Return whether this node can write a whole snapshot and go on logging meanwhile."""
        return self._pages.free_bytes > self._state_bytes() + 2 * self._journal.segments.segment_bytes

    @staticmethod
    def _anyway(stuck: Stuck, now: float) -> bool:
        """Return whether it is time to send the follower a state of any size, for as long as three attempts take."""
        if now < stuck.anyway_at:
            return False
        if now >= stuck.anyway_at + 3 * limits.STATE_AGAIN_S:
            stuck.patience_s *= 2       # it costs this node a whole snapshot each time
            stuck.anyway_at = now + stuck.patience_s
            return False
        return True

    def _help(self, peer: Peer, stuck: Stuck, now: float) -> None:
        store, replica = self._store, self._transport.context.replica
        if not stuck.sent and (self._is_less(stuck) or (self._anyway(stuck, now) and self._has_room())):
            log.info("%s has no room for entries, and is sent the state instead", peer.name)
            stuck.sent = True
            store.whole_for_peer = True
            replica.compact()
        elif (stuck.sent or stuck.applied + 1 < self._journal.first_index) and not store.busy \
                and store.newest_index > stuck.applied:
            # As the library does when the entries are no longer in the log.
            self._transport.send(peer.node, {
                "type": "append_entries", "term": replica.term, "serialized": store.getTransmissionData(peer.node),
            })
            if peer.sending is not None:        # otherwise the snapshot is being made whole
                stuck.since = now + limits.STATE_AGAIN_S - limits.STATE_FOR_ENTRIES_S
                stuck.sent = False
