"""Handing leadership over: to a node that an operator names, or to any that has the whole log and can serve."""

from __future__ import annotations

import logging

from sockpqd.cluster import limits
from sockpqd.cluster.leader.membership import Members
from sockpqd.cluster.leader.proposer import Proposer
from sockpqd.cluster.raft.peer import Peer
from sockpqd.cluster.raft.transport import RaftTransport

log = logging.getLogger("sockpqd.cluster")


class Handover:
    """Finds a peer that could lead, and offers it the leadership; leadership.py decides when to hand over."""

    def __init__(self, transport: RaftTransport, members: Members, proposer: Proposer) -> None:
        self._transport = transport
        self._members = members
        self._proposer = proposer
        self._next_offer_at = 0.0
        self._offered = ""              # the node that leadership was offered to last
        self.wanted = False             # an operator wants leadership handed over,
        self._to: str | None = None     # to this node, or to any (None)
        self._hurried = False           # without waiting for entries that have no operations of clients

    def tick(self, now: float) -> None:
        """Offer leadership to a node with the complete log, once every proposal has an outcome."""
        waits = not (self._proposer.unwatched if self._hurried else self._proposer.idle)
        if waits or now < self._next_offer_at:
            return
        transferee = self.transferee()
        if transferee is not None:
            self._next_offer_at = now + limits.HAND_OVER_RETRY_S
            self._offered = transferee.name
            log.info("handing leadership over to %s", transferee.name)
            self._transport.hand_over(transferee)

    def transferee(self) -> Peer | None:
        """Return a peer that can take over: the one asked for, if any was; None if there is no such peer.

        It has the complete log. Peers with room for jobs, and those not offered leadership last, are preferred.
        """
        last = self._transport.context.journal.last_index
        peers = self._transport.peers.values()
        transferees = [peer for peer in peers if peer.match == last and self._unfit(peer) is None]
        if self._to is not None:
            transferees = [peer for peer in transferees if peer.name == self._to]
        return min(transferees, key=lambda peer: (_full(peer), peer.name == self._offered), default=None)

    def begin(self, name: str | None, *, hurried: bool = False) -> str | None:
        """Start handing leadership to `name`, or to any suitable node (None), until `end`.

        Leadership moves once every proposal has an outcome; if `hurried`, once those of clients have one. Returns the
        reason, in one word, if it is not possible.
        """
        peers = self._transport.peers
        if self.wanted:
            return "busy"
        if name is not None:
            if name not in self._members.names or name not in peers:
                return "unknown"
            word = self._unfit(peers[name])
        else:
            fit = any(self._unfit(peer) is None for peer in peers.values())
            word = None if fit else "alone"
        if word is None:
            self.wanted, self._to, self._hurried = True, name, hurried
        return word

    def end(self) -> None:
        """Stop handing over: leadership has moved, or this node serves again."""
        self.wanted, self._to, self._hurried = False, None, False

    def successors(self) -> bool:
        """Return whether there is a node that could take over, now or soon."""
        return any(peer.up and peer.info is not None and peer.info.online for peer in self._transport.quorum.peers)

    def _unfit(self, peer: Peer) -> str | None:
        """Return why this peer cannot lead even if we wait, in one word; None if it can, now or soon."""
        if peer.name not in self._members.voters:
            return "learner"
        if not peer.up or peer.info is None:
            return "down"
        if not peer.info.online:
            return "offline"
        if peer.info.exhausted:
            return "full"
        if peer.choked or peer.sending is not None or not peer.info.voter:
            return "behind"
        return None


def _full(peer: Peer) -> bool:
    """Return whether this peer has no room for jobs."""
    return peer.info is not None and peer.info.full
