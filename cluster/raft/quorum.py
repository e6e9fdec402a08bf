"""Counts voters, to find what a majority of them has acknowledged.

To the library a cluster has two members: this node and QUORUM, which stands for as many of the others as a majority
needs. An acknowledgement by a majority is delivered to it as one of QUORUM, the votes of a majority as QUORUM's vote.
So the library's part in Raft stays unchanged, while the set of voters is decided here and can change (membership.py).
"""

from __future__ import annotations

from collections.abc import Iterable

from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.pysyncobj_adapter import QUORUM

LOST = float("-inf")
EVER = float("inf")


class Quorum:
    """Counts voters. `voters`: all members with a vote; `peers`: the others; `majority`: the number needed."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._heard = False             # a peer acknowledged something since the last report to the library
        self._durable = 0               # this node's durable index at that report
        self._reported = -1, LOST, 0    # its term, the time in acked_sent_at(), and match
        self.voters: frozenset[str] = frozenset()
        self.peers: list[Peer] = []
        self.majority = 1
        self.member = False             # this node is a voter
        self.learns = False             # it was a learner when it last was a member

    def change(self, voters: Iterable[str], *, learns: bool = False) -> None:
        """Count these voters from now on; the others must be known as peers. `learns`: this node is the learner.

        A removed learner remains one. It must not ask for votes as a removed voter does (elections.py): no entry was
        committed with its help, so the voters do not need its log.
        """
        context = self._context
        self.voters = frozenset(voters)
        self.peers = [peer for name, peer in context.peers.items() if name in self.voters]
        self.majority = len(self.voters) // 2 + 1
        self.member = context.name in self.voters
        self.learns = learns or (self.learns and not self.member)
        self._heard = True
        self._reported = -1, LOST, 0

    def heard(self) -> None:
        """Leader: record that a peer has sent an acknowledgement."""
        self._heard = True

    def acked_sent_at(self) -> float:
        """Leader: a majority has acknowledged messages sent at this time or later; monotonic seconds."""
        term = self._context.replica.term
        return self._reached([peer.acked_sent_at if peer.up and _counts(peer, term) else LOST for peer in self.peers])

    def promised_until(self) -> float:
        """Leader: a majority elects no other node before this time, by our clock; monotonic seconds."""
        term = self._context.replica.term
        return self._reached([peer.promised_until if peer.up and _counts(peer, term) else LOST for peer in self.peers])

    def match(self) -> int:
        """Leader: the index up to which the log is equal on a majority and durable on this node.

        A majority without this node would suffice, but committed entries are applied and may go into a snapshot at
        once.
        """
        term = self._context.replica.term
        matches = [peer.match if _counts(peer, term) else 0 for peer in self.peers]
        return int(min(self._context.journal.durable_index, self._reached(matches)))

    def covers(self, without: Peer) -> bool:
        """Leader: return whether a majority without this peer has on its disks all that the peer ever acknowledged.

        That is what is committed, and what the peer has acknowledged to this leader. Anything else it has belongs to
        logs that lost an election, and was committed by nobody.
        """
        context = self._context
        index, term = max(context.replica.commit_index, without.match), context.replica.term
        disks = int(self.member and context.journal.durable_index >= index)
        disks += sum(
            peer.up and _counts(peer, term) and peer.match >= index for peer in self.peers if peer is not without)
        return disks >= self.majority

    def _reached(self, theirs: list[float] | list[int]) -> float:
        """The value reached by a majority, counting this node if it is a voter."""
        needed = self.majority - self.member
        if not needed:
            return EVER
        theirs.sort(reverse=True)
        return theirs[needed - 1]

    def tick(self) -> None:
        """Leader: report to the library what a majority has reached since the last report.

        This node's own copy of an entry counts once it is durable: at the end of the turn that appended it, or later.
        """
        durable = self._context.journal.durable_index
        if not (self._heard or durable != self._durable or self.majority == 1) or not self._context.leads():
            return
        self._heard, self._durable = False, durable
        term, acked_sent_at, match = self._context.replica.term, self.acked_sent_at(), self.match()
        last_term, last_acked_sent_at, last_match = self._reported
        # Answers of a minority are not reported: the library must step down when it hears no majority for a while.
        news = (
            last_term != term or acked_sent_at > last_acked_sent_at or match > last_match or self.majority == 1
        )
        if acked_sent_at > LOST and news:
            self._reported = term, acked_sent_at, match
            self._context.deliver(QUORUM, {
                "type": "next_node_idx", "next_node_idx": match + 1, "reset": False, "success": True,
            })

    def elected(self, term: int) -> None:
        """Candidate: report to the library that a majority has voted for this node."""
        self._context.deliver(QUORUM, {"type": "response_vote", "term": term})


def _counts(peer: Peer, term: int) -> bool:
    """Return whether this voter answered in this term and has the right to vote.

    A node that lost its disk may have promised a newer leader not to answer us. It counts again once it is admitted.
    """
    return peer.term == term and peer.info is not None and peer.info.voter
