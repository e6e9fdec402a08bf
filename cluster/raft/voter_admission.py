"""The right to vote, which a node with an empty disk must earn.

A voter whose disk was wiped has forgotten what it acknowledged and which candidate it voted for; if it voted anyway,
acknowledged jobs could be lost. So a new journal carries no right to vote. A node gets it in one of three ways:

* founding: every configured member has reported that it is empty too, so nothing can have been forgotten;
* admission: a leader has brought it up to date, as a voter whose disk was lost or before it is made a voter
  (membership.py). The leader must know that it still leads by a majority WITHOUT this node that answered after the node
  came back empty. Such a majority shares a member with every majority that could elect another node by the forgotten
  vote. That member has answered the leader since, so it has not voted for a newer leader, and it votes for no candidate
  to which it did not grant a PreVote after that (elections.py). A leader that has asked another node to take over
  admits none in that term, because votes for its transferee need no PreVote. And the node must have the leader's log as
  it was when the node came back, which contains everything it may have acknowledged. It does not vote in the term of
  its admission;
* --bootstrap: the operator grants it.
"""

from __future__ import annotations

import logging

from sockpqd.cluster.raft.elections import Elections
from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.raft.voting_right import VotingRight
from sockpqd.cluster.wire.messages import Admit

log = logging.getLogger("sockpqd.cluster")

PATIENCE_S = 5.0                # for the other members of a new cluster, before the log names those that are missing
REMINDER_S = 60.0               # between two such lines


class Admission:
    """Grants the right to vote, by founding a new cluster or by the leader."""

    def __init__(self, context: Context, quorum: Quorum, right: VotingRight, elections: Elections) -> None:
        self._context = context
        self._quorum = quorum
        self._right = right
        self._elections = elections
        self._reminder_at: float | None = None      # when the log says next for whom this node waits; monotonic seconds

    def bootstrap(self) -> None:
        """Grant the right to vote to this node, as the operator demands."""
        self._context.journal.forget_acknowledged()
        if not self._context.journal.voter:
            log.warning("--bootstrap: this node votes although its data directory is empty. "
                        "If it belonged to this cluster before, acknowledged jobs may be lost.")
        self._right.granted(-1)

    def found_cluster(self) -> None:
        """Become a voter once all members are known to be empty."""
        context = self._context
        if context.journal.voter or not context.journal.empty or not self._quorum.member:
            return
        # Any report since this process started is enough, however old: if this node had ever acknowledged anything, a
        # majority would not have been empty since.
        empty = all(peer.info is not None and peer.info.empty for peer in self._quorum.peers)
        if empty and all(peer.info is None or peer.info.empty for peer in context.peers.values()):
            log.info("all members are empty: this is a new cluster")
            self._right.granted(-1)
            self._elections.leader_lost()       # there is no leader to wait for
        else:
            self._remind()

    def _remind(self) -> None:
        """Log now and then what keeps this empty node from taking part, while there is no leader."""
        context = self._context
        if self._reminder_at is None or context.replica.leader_node is not None:
            self._reminder_at = context.now + PATIENCE_S
        if context.now < self._reminder_at:
            return
        self._reminder_at = context.now + REMINDER_S
        if filled := sorted(peer.name for peer in context.peers.values() if peer.info and not peer.info.empty):
            log.warning("this node is empty, but %s %s not: it takes part when a leader has brought it up to date."
                        " Start a majority of the nodes that have data.",
                        " and ".join(filled), "is" if len(filled) == 1 else "are")
            return
        silent = sorted(peer.name for peer in self._quorum.peers if peer.info is None)
        log.warning("a new cluster is founded when all its members report that they are empty: still waiting for %s."
                    " Start what is missing. If it will not come, and no node ever had data, start a majority of the"
                    " nodes once with --bootstrap.", " and ".join(silent))

    def tick(self) -> None:
        """Leader: admit peers that have caught up."""
        context = self._context
        if not context.leads() or self._elections.offered:
            return
        for peer in context.peers.values():
            if not peer.up or peer.info is None or peer.info.voter or peer.leaving:
                peer.admit_target = None
            elif peer.admit_target is None:
                peer.admit_target, peer.admit_after = context.journal.last_index, context.now
            elif peer.match >= peer.admit_target and self._leads_without(peer):
                context.send(peer, Admit(context.replica.term))

    def _leads_without(self, newcomer: Peer) -> bool:
        """Return whether a majority has answered since the newcomer was found, not counting the newcomer."""
        quorum = self._quorum
        acknowledged = sum(
            1 for peer in quorum.peers
            if peer.info is not None and peer.info.voter
            and peer.term == self._context.replica.term and peer.acked_sent_at > newcomer.admit_after
        )
        return quorum.member + acknowledged >= quorum.majority

    def admitted(self, peer: Peer, message: Admit) -> None:
        """Follower: the leader grants this node the right to vote."""
        context = self._context
        replica = context.replica
        if self._right.held or message.term != replica.term or replica.leader_node is not peer.node:
            return
        log.info("brought up to date by %s: this node votes from now on", peer.name)
        # This node may have voted in this term before it lost its disk; the journal keeps that beyond a restart.
        context.journal.setCurrentTerm(message.term, peer.name)
        self._right.granted(message.term)
