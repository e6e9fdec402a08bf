"""Hands leadership over when this node's disk has no room for jobs, or syncs slowly, and another disk is healthy.

Without room a leader refuses jobs until somebody makes some, although other nodes have it. With a disk that stalls at
each sync every command waits for it, as a leader commits nothing before its own copy is durable. A single stall moves
nothing: by the time another node leads it would be over. But the next entry after one is a probe without any operation
of a client. Should its sync stall too, no client waits for it, and all of them are served by another node before it is
over.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from sockpqd.cluster import limits
from sockpqd.cluster.leader.handover import Handover
from sockpqd.cluster.leader.membership import Members
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.transport import RaftTransport

log = logging.getLogger("sockpqd.cluster")


class DiskHandover:
    """Decides when a leader hands over because of its disk, and to which node.

    `no_room`: it has no room for jobs, and without it a majority has (Capacity.displaced); `lags`: it takes long to
    sync what waits for it now (Syncing.lags).
    """

    def __init__(
        self, transport: RaftTransport, members: Members, handover: Handover, proposer: Proposer,
        propose_probe: Callable[[], None],
    ) -> None:
        """`propose_probe()`: propose an entry that changes nothing; call `probed` when it has an outcome."""
        self._proposer = proposer
        self._propose_probe = propose_probe
        self._next_probe_at = float("-inf")     # no probe before
        self._probing = False                   # a probe is in flight
        self._transport = transport
        self._members = members
        self._handover = handover
        self.no_room = False
        self.lags = False
        self._no_room_since: float | None = None
        self._next_at = float("-inf")           # no handover before
        self._ends_at: float | None = None      # when a handover of ours has failed
        self._successor: Peer | None = None     # of a handover begun here

    def tick(self, now: float, *, serving: bool) -> None:
        """Hand over if the disk demands it; give up when nobody takes over. `now`: monotonic seconds."""
        if not self.no_room:
            self._no_room_since = None
        elif self._no_room_since is None:
            self._no_room_since = now
        if self._ends_at is not None:
            if now >= self._ends_at or self._successor is None or not self._successor.up:
                log.info("no node with a better disk took over: this node goes on leading")
                self.ended()
            return
        # Disks that fill up together do so at nearly the same entry: the others report it within this time.
        no_room = self._no_room_since is not None and now >= self._no_room_since + limits.NO_ROOM_KNOWN_S
        if not (no_room or self.lags) or not serving or self._handover.wanted or now < self._next_at:
            return
        successor = self._better()
        if successor is None or self._handover.begin(successor.name, hurried=self.lags) is not None:
            return
        reason = "has no room for jobs" if no_room else "takes long to sync"
        log.warning("the disk of this node %s: %s is to lead", reason, successor.name)
        self._successor = successor
        self._ends_at = now + limits.TRANSFER_S
        self._next_at = self._ends_at + limits.DISK_REST_S

    def doubt(self, now: float, *, serving: bool) -> None:
        """After a stall, or while a probe is due: hold back clients' operations, and propose the probe.

        A node that is not the serving leader, or has probed recently, holds nothing back.
        """
        proposer = self._proposer
        if not serving:
            proposer.paused = False
            return
        if not proposer.paused and not self._probing and now >= self._next_probe_at and self._transport.quorum.peers:
            self._next_probe_at = now + limits.DISK_REST_S
            proposer.paused = True
        if self.probe_due:
            self._probing = True
            self._propose_probe()

    @property
    def probe_due(self) -> bool:
        """True if only a turn is needed to propose the probe."""
        return self._proposer.paused and not self._probing and not self._proposer.entries_in_flight

    def probed(self) -> None:
        """Record that the probe has an outcome: clients' operations are proposed again."""
        self._probing = self._proposer.paused = False

    def ended(self) -> None:
        """End a handover that was begun here, because this node no longer leads or nobody took over."""
        if self._ends_at is not None:
            self._ends_at = self._successor = None
            self._handover.end()

    def followed(self) -> None:
        """Record that another node leads: if this one leads again, it may hand over without resting first."""
        self._next_at = float("-inf")
        self.no_room = self.lags = False

    def _better(self) -> Peer | None:
        """Return the voter with room that should lead, None if there is none; the quickest disk first.

        Where this node's disk lags, a better one is proven by an acknowledgement of an entry that this node has not
        synced yet.
        """
        journal = self._transport.context.journal
        able = [
            peer for peer in self._transport.peers.values()
            if peer.name in self._members.voters and peer.info is not None and not peer.info.full
            and peer.match + limits.PREFERENCE_LAG_MAX >= journal.last_index
            and (not self.lags or peer.match > journal.durable_index)
        ]
        return min(able, key=lambda peer: peer.info.sync_us if peer.info is not None else 0, default=None)
