"""Elections: PreVote, leader stickiness, and an early election when the leader's process dies.

The library's own election timer is switched off. This one first asks whether an election could be won (PreVote), so a
node that was cut off and returns does not disturb the others (H6). A node votes only for a candidate to which it has
granted a PreVote since it last heard a leader. So after answering a leader it ignores every candidacy older than that
answer, which voter_admission.py relies on. A node that has heard its leader within the shortest election timeout grants
no PreVotes; the leader's lease relies on that. The timer is shortened when the leader's connection is closed, because
its process has probably died, and runs to its end when the leader falls silent.
"""

from __future__ import annotations

import logging
import random

from cluster import limits
from cluster.raft.peer import Context, Peer
from cluster.raft.quorum import Quorum
from cluster.wire.messages import PreVote, PreVoteAnswer, RequestVote, TimeoutNow, Vote

log = logging.getLogger("sockpqd.cluster")


class Elections:
    """The election timer and the rules of voting. Times in seconds."""

    def __init__(
        self, context: Context, quorum: Quorum, rng: random.Random, election_min_s: float, election_max_s: float,
    ) -> None:
        self._context = context
        self._quorum = quorum
        self._rng = rng
        self._min_s = election_min_s
        self.max_s = election_max_s
        self._deadline: float | None = None
        self._heard = float("-inf")             # when the present leader was last heard
        self._round = 0
        self._pre_votes: set[str] | None = None     # nodes that granted one in this round; None: no round is open
        self._round_term = 0
        self._pre_votes_granted: set[str] = set()   # candidates we granted one since we last heard a leader
        self._handover_term = 0                 # the old leader asked for an election in this term
        self._votes: set[str] = set()           # nodes that voted for us
        self._votes_term = -1                   # in this term
        self._campaign_after = -1               # start an election if this is still the term
        self._led = False
        self.begun = 0                          # elections that this node started
        self.may_campaign = True                # False while this node is switched offline
        self.offered_term = -1                  # the last term in which we asked another node to take over,
        self.offered_at = 0.0                   # and when
        self.no_vote_up_to = -1                 # no vote in terms up to this one (voter_admission.py)

    def leader_heard(self) -> None:
        """Note a message from the leader of the present term."""
        self._heard = self._context.now
        self._pre_votes = None
        self._pre_votes_granted.clear()
        self._restart_timer()

    def leader_alive(self) -> bool:
        """Has the leader been heard within the shortest election timeout?"""
        return self.silence_s() < self._min_s

    @property
    def heard_at(self) -> float:
        """When the present leader was heard last, in monotonic seconds; -inf once its connection was closed."""
        return self._heard

    def silence_s(self) -> float:
        """Seconds since a leader was heard."""
        return self._context.now - self._heard

    def leader_sends(self) -> None:
        """Note that bytes of an incomplete message arrive from the leader, so it is alive."""
        self._heard = max(self._heard, self._context.now)
        self._restart_timer()

    def leader_lost(self) -> None:
        """Shorten the timer, because the leader's connection was closed; PreVote makes a wrong guess harmless."""
        self._heard = float("-inf")
        early = self._context.now + self._rng.random() * self._min_s * limits.EARLY_ELECTION_SHARE
        self._deadline = early if self._deadline is None else min(self._deadline, early)

    def vote_given(self) -> None:
        """Restart the timer after the library has voted, so that the candidate has its time."""
        self._restart_timer()

    def _restart_timer(self) -> None:
        self._deadline = self._context.now + self._min_s + (self.max_s - self._min_s) * self._rng.random()

    def tick(self) -> None:
        """Start a PreVote round when the timer has run out, and an election when a round was won."""
        if self._context.leads():
            self._led = True
            return
        self._count_votes()
        self._check_timer()
        self._start_election()

    def _check_timer(self) -> None:
        context = self._context
        if self._led or self._deadline is None:
            self._led = False
            self._restart_timer()
            if self._alone():
                self._deadline = context.now    # there is no one to wait for
        if self._deadline is None or context.now < self._deadline:
            return
        self._restart_timer()
        # A removed node asks for votes too, though its own does not count: as long as the others have not heard of its
        # removal, they may be unable to elect one of themselves without entries that only it has. Nodes that know of
        # the removal do not answer.
        if not context.journal.voter or not self.may_campaign or self._quorum.learns:
            return
        if self._alone():
            self._campaign()
            return
        self._round += 1
        self._pre_votes = {context.name}
        self._round_term = context.replica.term
        question = PreVote(self._round, self._round_term, context.journal.last_index, context.journal.last_term)
        for peer in self._quorum.peers:
            context.send(peer, question)

    def _alone(self) -> bool:
        """Is this node the only voter?"""
        return self._quorum.voters == {self._context.name}

    def pre_vote_requested(self, peer: Peer, message: PreVote) -> None:
        """Answer a PreVote request."""
        context, journal = self._context, self._context.journal
        granted = (
            journal.voter
            and not context.leads()
            and not self.leader_alive()
            and not peer.leaving
            and message.term >= max(context.replica.term, self.no_vote_up_to)
            and (message.last_term, message.last_index) >= (journal.last_term, journal.last_index)
        )
        if granted:
            self._pre_votes_granted.add(peer.name)
        context.send(peer, PreVoteAnswer(message.round, context.replica.term, granted))

    def pre_vote_answered(self, peer: Peer, message: PreVoteAnswer) -> None:
        """Count a PreVote; a majority starts the real election."""
        context = self._context
        if message.term > context.replica.term:
            self._pre_votes = None
            context.adopt_term(peer, message.term)
        elif (
            message.granted
            and self._pre_votes is not None
            and message.round == self._round
            and self._round_term == context.replica.term
            and not context.leads()
        ):
            self._pre_votes.add(peer.name)
            if self._majority(self._pre_votes):
                self._pre_votes = None
                self._campaign()

    def _campaign(self) -> None:
        self._campaign_after = self._context.replica.term

    def _start_election(self) -> None:
        """Make the library start an election in its tick, which follows at once.

        Doing it earlier is wrong: without connections the library would keep the request, and depose a healthy leader
        later.
        """
        context, replica, term = self._context, self._context.replica, self._campaign_after
        self._campaign_after = -1
        if term == replica.term and (self._alone() or any(peer.up for peer in context.peers.values())):
            self.begun += 1
            log.info("starting an election after term %d", term)
            # To the library this looks as if the leader it knows (or None) handed over.
            context.deliver(replica.leader_node, {"type": "timeout_now", "term": term})

    def library_requests_votes(self, term: int, last_index: int, last_term: int) -> None:
        """Ask the voters for the votes that the library, as a candidate, wants."""
        self._votes, self._votes_term = {self._context.name}, term
        for peer in self._quorum.peers:
            self._context.send(peer, RequestVote(term, last_index, last_term, term == self._handover_term))

    def vote_requested(self, peer: Peer, message: RequestVote) -> None:
        """Pass a vote request to the library, unless this node must not vote or granted the candidate no PreVote."""
        context = self._context
        if not context.journal.voter or message.term <= self.no_vote_up_to or peer.leaving:
            return
        if peer.name not in self._pre_votes_granted and not message.handover:
            return
        context.deliver(peer.node, {
            "type": "request_vote", "term": message.term,
            "last_log_index": message.last_index, "last_log_term": message.last_term,
        })

    def vote_received(self, peer: Peer, message: Vote) -> None:
        """Count a vote, unless it is for an earlier candidacy."""
        if message.term == self._votes_term:
            self._votes.add(peer.name)
            self._count_votes()

    def _count_votes(self) -> None:
        if self._votes_term == self._context.replica.term and self._majority(self._votes):
            self._votes_term = -1
            self._quorum.elected(self._context.replica.term)

    def _majority(self, names: set[str]) -> bool:
        quorum = self._quorum
        return len(names & quorum.voters) >= quorum.majority

    def hand_over(self, peer: Peer) -> None:
        """Leader: ask a peer that has the complete log to start an election at once."""
        context = self._context
        self.offered_term, self.offered_at = context.replica.term, context.now
        context.send(peer, TimeoutNow(context.replica.term))

    def timeout_now(self, peer: Peer, message: TimeoutNow) -> None:
        """Campaign at once, because the leader asks this node to take over."""
        replica = self._context.replica
        from_leader = message.term == replica.term and replica.leader_node is peer.node
        may = self._context.journal.voter and self.may_campaign and self._quorum.member
        if from_leader and may:
            self._handover_term = replica.term + 1
            self._campaign()
