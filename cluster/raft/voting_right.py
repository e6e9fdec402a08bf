"""The right to vote of this node: whether it has one, and the promises it may have forgotten.

The journal says whether a node has the right (voter_admission.py). A voter that was started again may have forgotten
what it acknowledged and for whom it voted, and cannot see it on its own disk: an older copy of the data directory looks
whole, and so does a journal that was cut between two frames. So it asks. Every other node says in its greeting which
term it has come to and where its log ends, and until enough of them have, this node neither votes nor counts.

Enough have when all other voters have. Only the leader for which an entry was acknowledged, and only the candidate that
was voted for, certainly knew of it at that moment: the entry is in the leader's log, and the candidate has come to its
term. So this node votes only for nodes whose log is at least as long as the longest of theirs, only in terms after
theirs, and acknowledges nothing in a term before theirs. A leader that has a majority without this node admits it at
once, as it does a node whose disk was wiped.

If not all can be asked, because some are down, it waits for REENTRY_S and continues: two of three must serve when the
third is gone for good. Data lost then was on two machines of three and is gone from both, from this one because of the
older copy. It continues in the next term, since it may have voted for the missing node in the current one.
"""

from __future__ import annotations

import logging

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.wire.messages import Hello

log = logging.getLogger("sockpqd.cluster")

TURN_S_MAX = 0.2                # a node that stood still for longer did not wait: nobody could greet it


class VotingRight:
    """Decides whether this node may vote, and whether its acknowledgements count towards a majority.

    Positions in the log are (term, index) of an entry.
    """

    def __init__(self, context: Context, quorum: Quorum) -> None:
        self._context = context
        self._quorum = quorum
        self._asks = False                          # the others must greet this node before it votes
        self._greeted: set[str] = set()
        self._furthest = (0, 0)                     # where the longest log ends that this node heard of
        self._waited_s = 0.0                        # for greetings, or for a leader; only while turns are taken
        self._ticked_at: float | None = None
        self.no_vote_up_to = -1                     # no vote in terms up to this one

    @property
    def held(self) -> bool:
        """True if this node may vote, and its acknowledgements count."""
        return self._context.journal.voter and not self._asks

    def may_vote(self, term: int, last_term: int, last_index: int) -> bool:
        """Return whether this node may vote in this term for a node whose log ends at this position."""
        return self.held and term > self.no_vote_up_to and self.allows(last_term, last_index)

    def allows(self, last_term: int, last_index: int) -> bool:
        """Return whether a log that ends here holds everything that this node may have forgotten."""
        return (last_term, last_index) >= self._furthest

    def started(self) -> None:
        """Withhold the right of a voter until the others have been asked: it may have voted before it was restarted."""
        self._asks = self._context.journal.voter

    def granted(self, term: int) -> None:
        """Accept the right from a leader or an operator; `term`: no vote in terms up to this one."""
        self._context.journal.set_voter()
        self._asks = False
        self._furthest = (0, 0)
        self.no_vote_up_to = max(self.no_vote_up_to, term)

    def greeted(self, peer: Peer, hello: Hello) -> None:
        """Record what another node reports about itself."""
        if self._asks:
            self._greeted.add(peer.name)
            self._furthest = max(self._furthest, (hello.last_term, hello.last_index))
            self._context.adopt_term(peer, hello.term)
            self.no_vote_up_to = max(self.no_vote_up_to, hello.term)

    def leader_heard(self) -> None:
        """Record that a leader was heard."""
        if not self._asks:
            self._waited_s = 0.0

    def tick(self) -> None:
        """Vote again when the others have been asked, or cannot be."""
        if not self._asks and self._furthest == (0, 0):
            return
        now = self._context.now
        if self._ticked_at is not None:
            self._waited_s += min(now - self._ticked_at, TURN_S_MAX)
        self._ticked_at = now
        missing = self._quorum.voters - self._greeted - {self._context.name}
        if not self._asks:
            self._look_at_furthest()
        elif not missing:
            self._asks, self._waited_s = False, 0.0
        elif self._waited_s >= limits.REENTRY_S and self._quorum.member:    # a removed node must depose nobody
            log.warning("voting again, although %s could not be asked what this node may have forgotten: a node that is"
                        " down, or that refuses this one, as the lines before then say. It has forgotten nothing unless"
                        " its data directory is an older copy.", " and ".join(sorted(missing)))
            self._asks, self._waited_s = False, 0.0
            term = self._context.replica.term + 1
            self._context.adopt_term(next(iter(self._context.peers.values())), term)
            self.no_vote_up_to = max(self.no_vote_up_to, term)

    def _look_at_furthest(self) -> None:
        """Stop waiting for the longest log when this one is as long, or its node has not been elected for a while."""
        journal = self._context.journal
        if self.allows(journal.last_term, journal.last_index) or self._waited_s >= limits.REENTRY_S:
            self._furthest = (0, 0)
