"""Elections: PreVote, leader stickiness, and an early election when the leader's process dies.

The library's own election timer is switched off. This one first asks whether an election could be won (PreVote), so a
node that was cut off and returns does not disturb the others (H6). A node votes only for a candidate to which it has
granted a PreVote since it last heard a leader, and a candidate asks for the votes of those only whose grants it counted
before it stood. So after answering a leader a node ignores every candidacy older than that answer, even if the question
came late; voter_admission.py relies on it.

Two clocks keep a node from granting PreVotes, and from asking for them, after it has heard its leader:

* its patience, the shortest election timeout, which keeps a slow leader in office. It ends at once when the
  leader's connection is closed: the process has probably died, and if not, an election does no harm;
* its promise, on which the leader's lease rests (lease.py). Nothing ends it but time: the end of a connection does not
  prove that the process at the other end has ended, or knows of it. It is not in the journal, so a node that was
  started again keeps the longest promise that it may have made.

Only an election requested by the leader itself (TimeoutNow) waits for neither, as that leader has given up its lease.
"""

from __future__ import annotations

import logging
import random

from sockpqd.cluster import limits
from sockpqd.cluster.raft.peer import Context, Peer
from sockpqd.cluster.raft.quorum import Quorum
from sockpqd.cluster.raft.voting_right import VotingRight
from sockpqd.cluster.wire.messages import PreVote, PreVoteAnswer, RequestVote, TimeoutNow, Vote

log = logging.getLogger("sockpqd.cluster")

FOUNDING_STEPS = 4              # the first elections of a new cluster are spread over this many steps


class Elections:
    """The election timer and the rules of voting. Times in seconds."""

    def __init__(
        self, context: Context, quorum: Quorum, right: VotingRight, rng: random.Random, election_min_s: float,
        election_max_s: float,
    ) -> None:
        self._context = context
        self._quorum = quorum
        self._right = right
        self._rng = rng
        self._min_s = election_min_s
        self.max_s = election_max_s
        self._deadline: float | None = None
        self._heard = float("-inf")             # when the present leader was last heard; -inf: no patience with it
        self.last_heard_at = float("-inf")      # when any leader was heard last
        self._promised_until = float("-inf")    # no vote for another node than the leader before this time
        self._early_s: float | None = None      # pause before the next attempt after the leader's connection was closed
        self._round = 0
        self._pre_votes: set[str] | None = None     # nodes that granted one in this round; None: no round is open
        self._round_term = 0
        self._granted_by: set[str] = set()          # nodes that granted one in the round that was won last
        self._pre_votes_granted: set[str] = set()   # candidates we granted one since we last heard a leader
        self._handover_term = 0                 # the old leader asked for an election in this term
        self._votes: set[str] = set()           # nodes that voted for us
        self._votes_term = -1                   # in this term
        self._campaign_after = -1               # start an election if this is still the term
        self._led = False
        self.begun = 0                          # elections that this node started
        self.may_campaign = True                # False while this node is switched offline
        self._offered_term = -1                 # the last term in which we asked another node to take over

    def started(self) -> None:
        """Keep the promises that this node may have made before it was started."""
        if not self._context.journal.empty:
            self._promised_until = self._context.now + self._min_s

    def leader_heard(self, promise_ms: int) -> None:
        """Record a message from the leader of the current term, and promise not to help elect another for a while."""
        self._heard = self.last_heard_at = self._context.now
        self._promised_until = max(self._promised_until, self._context.now + promise_ms / 1000)
        self._early_s = None
        self._pre_votes = None
        self._pre_votes_granted.clear()
        if self._handover_term != self._context.replica.term + 1:
            self._campaign_after = -1           # the round was won before the promise
        self._restart_timer()

    def leader_alive(self) -> bool:
        """Return whether the leader has been heard within the shortest election timeout."""
        return self.silence_s() < self._min_s

    @property
    def heard_at(self) -> float:
        """The time at which the current leader was heard last, in monotonic seconds.

        -inf after its connection was closed.
        """
        return self._heard

    def silence_s(self) -> float:
        """Seconds since a leader was heard."""
        return self._context.now - self._heard

    def leader_sends(self) -> None:
        """Record that bytes of an incomplete message arrive from the leader, so it is alive."""
        self._heard = max(self._heard, self._context.now)
        self._restart_timer()

    def leader_lost(self) -> None:
        """End the patience, because the leader's connection was closed; if the leader is alive, PreVote prevents harm.

        The others notice it at the same moment, and can grant nothing before their promises end. So the nodes make
        their attempts one after the other after that, in the order of their names.
        """
        self._heard = float("-inf")
        step_s = self._early_s = self._min_s * limits.EARLY_ELECTION_STEP
        early = max(self._context.now, self._promised_until) + self._turn() * step_s
        self._deadline = early if self._deadline is None else min(self._deadline, early)

    def _turn(self) -> float:
        """Return this node's place among the candidates to succeed the leader, in steps.

        By its name, or random if no node led.
        """
        leader = self._context.replica.leader_node
        if leader is None:
            return FOUNDING_STEPS * self._rng.random()
        before = [name for name in self._quorum.voters if name < self._context.name and name != leader.id]
        return len(before) + self._rng.uniform(0.1, 0.3)

    def vote_given(self) -> None:
        """Restart the timer after the library has voted, so that the candidate has time to win."""
        self._early_s = None
        self._restart_timer()

    def _restart_timer(self) -> None:
        wait_s = self._min_s + (self.max_s - self._min_s) * self._rng.random()
        if self._early_s is not None:           # soon, but ever later: on a slow line an answer needs its time
            wait_s = min(wait_s, self._early_s * self._rng.uniform(1, 2))
            self._early_s *= 2
        self._deadline = self._context.now + wait_s

    def tick(self) -> None:
        """Start a PreVote round when the timer has run out, and an election when a round was won."""
        if self._context.leads():
            self._led = True
            return
        self._count_votes()
        self._check_timer()
        self._start_election()

    def _check_timer(self) -> None:
        context, journal = self._context, self._context.journal
        if self._led or self._deadline is None:
            self._led = False
            self._restart_timer()
            if self._alone():
                self._deadline = context.now    # there is no one to wait for
        if self._deadline is None or context.now < self._deadline or context.replica.behind:
            return
        self._restart_timer()
        # A removed node asks for votes too, though its own does not count: as long as the others have not heard of its
        # removal, they may be unable to elect one of themselves without entries that only it has. Nodes that know of
        # the removal do not answer.
        if not self._right.held or not self.may_campaign or self._quorum.learns:
            return
        if self._alone():
            self._campaign()
            return
        if context.now < self._promised_until or not self._right.allows(journal.last_term, journal.last_index):
            return
        self._round += 1
        self._pre_votes = {context.name}
        self._round_term = context.replica.term
        question = PreVote(self._round, self._round_term, journal.last_index, journal.last_term)
        for peer in self._quorum.peers:
            context.send(peer, question)

    def _alone(self) -> bool:
        """Return whether this node is the only voter."""
        return self._quorum.voters == {self._context.name}

    def pre_vote_requested(self, peer: Peer, message: PreVote) -> None:
        context, journal = self._context, self._context.journal
        granted = (
            self._right.held
            and not context.leads()
            and not self.leader_alive()
            and context.now >= self._promised_until
            and not peer.leaving
            and message.term >= max(context.replica.term, self._right.no_vote_up_to)
            and (message.last_term, message.last_index) >= (journal.last_term, journal.last_index)
            and self._right.allows(message.last_term, message.last_index)
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
                self._granted_by, self._pre_votes = self._pre_votes, None
                self._campaign()

    def _campaign(self) -> None:
        self._campaign_after = self._context.replica.term

    def _start_election(self) -> None:
        """Make the library start an election in its tick, which follows at once.

        Doing it earlier is wrong: without connections the library would keep the request, and depose a healthy leader
        later.
        """
        context, replica, term = self._context, self._context.replica, self._campaign_after
        if replica.behind:
            return
        self._campaign_after = -1
        if term == replica.term and (self._alone() or any(peer.up for peer in context.peers.values())):
            self.begun += 1
            log.info("starting an election after term %d", term)
            # To the library this looks like a handover by the leader that it knows (or None).
            context.deliver(replica.leader_node, {"type": "timeout_now", "term": term})

    def library_requests_votes(self, term: int, last_index: int, last_term: int) -> None:
        """Ask the voters for the votes that the library, as a candidate, wants: those that granted a PreVote.

        A later grant may answer a delayed question, and may have been given after the voter heard its leader again.
        When the leader hands over, all voters are asked for their votes, and none for a PreVote.
        """
        self._votes, self._votes_term = {self._context.name}, term
        request = RequestVote(term, last_index, last_term, term == self._handover_term)
        for peer in self._quorum.peers:
            if request.handover or peer.name in self._granted_by:
                self._context.send(peer, request)

    def vote_requested(self, peer: Peer, message: RequestVote) -> None:
        """Pass a vote request to the library, unless this node must not vote or granted the candidate no PreVote."""
        context = self._context
        if not self._right.may_vote(message.term, message.last_term, message.last_index) or peer.leaving:
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
        """Return whether these nodes elect this one, which must have applied the membership by which it counts them."""
        quorum = self._quorum
        return len(names & quorum.voters) >= quorum.majority and not self._context.replica.behind

    def hand_over(self, peer: Peer) -> None:
        """Leader: ask a peer that has the complete log to start an election at once."""
        self._offered_term = self._context.replica.term
        self._context.send(peer, TimeoutNow(self._offered_term))

    def timeout_now(self, peer: Peer, message: TimeoutNow) -> None:
        """Campaign at once, because the leader asks this node to take over."""
        replica = self._context.replica
        from_leader = message.term == replica.term and replica.leader_node is peer.node
        may = self._right.held and self.may_campaign and self._quorum.member
        if from_leader and may:
            self._handover_term = replica.term + 1
            self._campaign()

    @property
    def asked(self) -> bool:
        """Leader: return whether this term was begun on the request of the leader before, or of this node itself."""
        return self._handover_term == self._context.replica.term

    @property
    def offered(self) -> bool:
        """Leader: return whether another node was asked to take over in this term.

        It may do so at any time, so there is no lease.
        """
        return self._offered_term == self._context.replica.term

    def stand_again(self) -> None:
        """Leader: get elected once more, for a term in which no other node was asked to take over."""
        context = self._context
        log.info("leadership was offered and not taken: this node stands for the next term")
        context.adopt_term(next(iter(context.peers.values())), context.replica.term + 1)
        self._handover_term = context.replica.term + 1
        self._campaign()
