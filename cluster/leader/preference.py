"""Spreads leaders: a leader hands over to a node that its operator prefers (`raft.prefer`, spec/cluster 4.3).

Where three hosts run several clusters, each cluster may prefer another host. That must not cost availability: a
preferred node that failed as a leader stays a follower for a while, and handovers are far apart. The node elected after
a failure knows of it, and reports it to the others in its Info, so that the knowledge survives that node.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from sockpqd.cluster import limits
from sockpqd.cluster.leader.handover import Handover
from sockpqd.cluster.leader.membership import Members
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.transport import RaftTransport

log = logging.getLogger("sockpqd.cluster")


class LeadershipLoss:
    """A node's latest loss of leadership, other than by handing over.

    It is not preferred again before `until` (monotonic seconds); after the next loss it waits twice `span_s`.
    """

    __slots__ = ("span_s", "until")

    def __init__(self, until: float, span_s: float) -> None:
        self.until = until
        self.span_s = span_s


class Preference:
    """Decides when a leader hands over to a node with a higher preference."""

    def __init__(self, own: int, transport: RaftTransport, members: Members, handover: Handover) -> None:
        """`own`: this node's preference, from 1 to 100; `handover`: lets another node lead."""
        self._own = own
        self._transport = transport
        self._members = members
        self._handover = handover
        self._losses: dict[str, LeadershipLoss] = {}
        self._next_at = 0.0             # no handover before
        self._ends_at: float | None = None      # when a handover of ours has failed
        self._sent_away = False         # an operator had this node hand over
        self.mean_sync_s: Callable[[float], float] = lambda now: 0.0    # of the disk, as of now; 0: unknown

    @property
    def own(self) -> int:
        """The preference that this node reports to the others; 0 after an operator made it hand over leadership."""
        return 0 if self._sent_away else self._own

    def sync_us(self, now: float) -> int:
        """Return the average time of a sync of this node's journal, in microseconds; 0 if unknown."""
        return round(self.mean_sync_s(now) * 1_000_000)

    def send_away(self) -> None:
        """Record that an operator has moved leadership away from this node, so it must not return automatically."""
        self._sent_away = True

    def began(self, now: float, before: str | None, *, handed_over: bool) -> None:
        """Record the beginning of a leadership of this node. `before`: the leader before it, None: unknown."""
        self._sent_away = False
        self._ends_at = None
        self._next_at = now + limits.PREFERENCE_REST_S
        if before is not None and not handed_over:
            known = self._losses.get(before)
            recent = known is not None and now < known.until + limits.LOSS_S_MAX
            span_s = min(2 * known.span_s, limits.LOSS_S_MAX) if known is not None and recent else limits.LOSS_S
            self._losses[before] = LeadershipLoss(now + span_s, span_s)

    def ended(self) -> None:
        """Record that this node no longer leads, which also ends a handover."""
        if self._ends_at is not None:
            self._ends_at = None
            self._handover.end()

    def losses(self, now: float) -> tuple[tuple[str, int, int], ...]:
        """Return the losses for the other nodes: name, seconds left (negative when over), and span in seconds."""
        return tuple((name, int(loss.until - now), int(loss.span_s)) for name, loss in sorted(self._losses.items()))

    def heard(self, now: float, losses: Iterable[tuple[str, int, int]]) -> None:
        """Adopt the losses reported by the leader."""
        self._losses = {name: LeadershipLoss(now + left_s, span_s) for name, left_s, span_s in losses}

    def tick(self, now: float, *, serving: bool) -> None:
        """Hand over if some node is preferred; give up a handover that takes too long."""
        if self._ends_at is not None:
            if now >= self._ends_at:
                log.info("no preferred node took over: this node goes on leading")
                self.ended()
            return
        if not serving or self._handover.wanted or now < self._next_at:
            return
        self._next_at = now + limits.PREFERENCE_LOOK_S
        better = self._better(now)
        if better is not None and self._handover.begin(better.name) is None:
            log.info("%s is preferred as leader", better.name)
            self._next_at = now + limits.PREFERENCE_REST_S
            self._ends_at = now + limits.TRANSFER_S

    def _better(self, now: float) -> Peer | None:
        """Return the voter with the highest preference above ours that may lead now; None if there is none."""
        last = self._transport.context.journal.last_index
        able = [
            peer for peer in self._transport.peers.values()
            if peer.name in self._members.voters and peer.info is not None and peer.info.prefer > self._own
            and not peer.info.full
            and peer.match + limits.PREFERENCE_LAG_MAX >= last and not self._slower(peer, now)
            and not self._lost(peer, now)
        ]
        return max(able, key=lambda peer: peer.info.prefer if peer.info is not None else 0, default=None)

    def _slower(self, peer: Peer, now: float) -> bool:
        """Return whether the peer's disk takes more than twice as long to sync, so that clients would notice."""
        assert peer.info is not None
        return peer.info.sync_us > max(2 * self.sync_us(now), limits.PREFERENCE_SYNC_US_MIN)

    def _lost(self, peer: Peer, now: float) -> bool:
        loss = self._losses.get(peer.name)
        return loss is not None and now < loss.until
