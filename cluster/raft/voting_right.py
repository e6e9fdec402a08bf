"""The right to vote of this node: whether it has one, and what it may have forgotten since it used it.

The journal says whether a node has the right (voter_admission.py). A voter that was started again may have forgotten
what it acknowledged and for whom it voted, and cannot see it on its own disk: an older copy of the data directory looks
whole, and so does a journal that was cut between two frames. So it asks. Every other node says in its greeting which
term it has come to and where its log ends, and until enough of them have, this node neither votes nor counts.

Enough have when any majority to which this node may have belonged has another member among them: a majority of the
voters without this node, or all others, where these are fewer. An entry that such a majority acknowledged is in the log
of one of them, and a candidate for which such a majority voted is known to one of them by its term. So this node votes
only for nodes whose log is at least as long as the longest of theirs, only in terms after theirs, and acknowledges
nothing in a term before theirs.

Where too few can be asked, because they are down, it waits for REENTRY_S and goes on as if nothing were forgotten: two
of three must serve when the third is gone for good. What is lost then was on two machines of three and is gone from
both, from this one by the older copy.
"""

from __future__ import annotations

import logging

from cluster import limits
from cluster.raft.peer import Context, Peer
from cluster.raft.quorum import Quorum
from cluster.wire.messages import Hello

log = logging.getLogger("sockpqd.cluster")


class VotingRight:
    """Whether this node votes and counts. Positions in the log are (term, index) of an entry."""

    def __init__(self, context: Context, quorum: Quorum) -> None:
        self._context = context
        self._quorum = quorum
        self._asks = False                          # enough others must greet this node before it votes
        self._asks_until = 0.0
        self._greeted: set[str] = set()
        self._furthest = (0, 0)                     # where the longest log ends that this node heard of
        self.no_vote_up_to = -1                     # no vote in terms up to this one

    @property
    def held(self) -> bool:
        """May this node vote, and does what it acknowledges count?"""
        return self._context.journal.voter and not self._asks

    def may_vote(self, term: int, last_term: int, last_index: int) -> bool:
        """May this node vote in this term for a node whose log ends so?"""
        return self.held and term > self.no_vote_up_to and self.allows(last_term, last_index)

    def allows(self, last_term: int, last_index: int) -> bool:
        """Does a log that ends so hold everything that this node may have forgotten?"""
        return (last_term, last_index) >= self._furthest

    def started(self) -> None:
        """Ask the others first, as this node may have voted before it was started."""
        self._asks = self._context.journal.voter
        self._asks_until = self._context.now + limits.REENTRY_S

    def granted(self, term: int) -> None:
        """Take the right from a leader or an operator; `term`: no vote in terms up to this one."""
        self._context.journal.set_voter()
        self._asks = False
        self._furthest = (0, 0)
        self.no_vote_up_to = max(self.no_vote_up_to, term)

    def greeted(self, peer: Peer, hello: Hello) -> None:
        """Note what another node says of itself."""
        if self._asks:
            self._greeted.add(peer.name)
            self._furthest = max(self._furthest, (hello.last_term, hello.last_index))
            if hello.term > self._context.replica.term:
                self._context.adopt_term(peer, hello.term)
            self.no_vote_up_to = max(self.no_vote_up_to, hello.term)

    def tick(self) -> None:
        """Vote again when enough others have been asked, or cannot be."""
        if not self._asks:
            return
        others = self._quorum.voters - {self._context.name}
        if len(self._greeted & others) >= min(self._quorum.majority, len(others)):
            self._asks = False
        elif self._context.now >= self._asks_until:
            self._asks = False
            self._furthest = (0, 0)
            log.warning("voting again, although %s could not be asked what this node may have forgotten. It has"
                        " forgotten nothing unless its data directory is an older copy.",
                        " and ".join(sorted(others - self._greeted)))
