"""The rules of nodes: elections, the log, commits, and what a crash leaves (spec/cluster 2, 4, 8).

Each method that begins with `may_`, or that a step asks, is one rule; mistakes.py replaces them one at a time. A step
returns the state after it, or None where the rules forbid it. So the search (search.py) asks for all steps of a state,
and the comparison with the code (trace.py) for one step after the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.model.state import (
    NOBODY,
    Chosen,
    Disk,
    Log,
    Node,
    Position,
    Sent,
    State,
    Term,
    canonical,
    entry,
    equal,
    last,
    term_of,
)

Label = tuple[Any, ...]         # a step by its name, with its arguments
Step = tuple[Label, State]

NOTHING_SENT, NOTHING_LED = Sent(), Term()


class Rules:
    """The rules of replication without loss of disks, changes of members, or time."""

    syncs = False               # a sync is a step of its own; else each step ends with one, commit index included

    def steps(self, state: State) -> Iterator[Step]:
        """Yield all that may happen next. The order does not matter."""
        numbers = range(len(state.nodes))
        for one in numbers:
            yield from self._of_node(state, one)
            for other in numbers:
                if other != one:
                    yield from self._of_two(state, one, other)

    def _of_node(self, state: State, one: int) -> Iterator[Step]:
        node = state.nodes[one]
        highest = min(max(node.term for node in state.nodes) + 1, len(state.terms) - 1)
        for term in range(node.term + 1, highest + 1):
            yield from self._tried(("stand", one, term), self.stand(state, one, term))
        if node.stands:
            yield from self._tried(("lead", one), self.lead(state, one))
        if node.leads:
            if state.entries:
                yield from self._tried(("propose", one), self.propose(state, one))
            for index in range(node.commit + 1, len(node.log) + 1):
                yield from self._tried(("commit", one, index), self.commit(state, one, index))
        for term in range(max(node.term, 1), len(state.terms)):
            yield from self._received(state, one, term)
        if state.crashes:
            yield from self._crashes(state, one)
        if self.syncs:
            yield from self._synced(state, one)

    def _of_two(self, state: State, one: int, other: int) -> Iterator[Step]:
        node = state.nodes[one]
        for term in range(max(node.term, 1), len(state.terms)):
            if state.nodes[other].sent[term].asked is not None:
                yield from self._tried(("vote", one, other, term), self.vote(state, one, other, term))

    def _received(self, state: State, one: int, term: int) -> Iterator[Step]:
        record = state.terms[term]
        if not record.leaders:
            return
        commit = state.nodes[one].commit
        for end in range(len(record.log) + 1):
            for known in range(commit, max(commit, record.commit) + 1):
                yield from self._tried(("receive", one, term, end, known), self.receive(state, one, term, end, known))

    def _crashes(self, state: State, one: int) -> Iterator[Step]:
        node = state.nodes[one]
        yield from self._tried(("crash", one), self.crash(state, one))
        if self.syncs and self.unsynced(node):
            yield from self._tried(("crash in a sync", one), self.crash(self.sync(state, one) or state, one))

    def _synced(self, state: State, one: int) -> Iterator[Step]:
        node = state.nodes[one]
        if self.unsynced(node):
            yield from self._tried(("sync", one), self.sync(state, one))
        if node.term and not node.leads:
            yield from self._tried(("acknowledge", one), self.acknowledge(state, one, node.term))

    @staticmethod
    def _tried(label: Label, state: State | None) -> Iterator[Step]:
        if state is not None:
            yield label, state

    # Disks

    def unsynced(self, node: Node) -> bool:
        """Return whether something is in memory only that a sync would write. A commit index waits for more."""
        return (node.term, node.vote, node.log, node.first, node.voter) != (
            node.disk.term, node.disk.vote, node.disk.log, node.disk.first, node.disk.voter)

    def written(self, node: Node) -> Node:
        """Return the node after a sync: all that it has in memory is one frame of its journal (spec/cluster 8.1)."""
        return node._replace(disk=Disk(node.term, node.vote, node.log, node.commit, node.first, node.voter))

    def kept(self, node: Node) -> Node:
        """Return the node after it has appended something: with a sync where syncs are no steps of their own."""
        return node if self.syncs else self.written(node)

    def noted(self, node: Node) -> Node:
        """Return the node after its commit index rose, which is written with the next entry."""
        return node if self.syncs else self.written(node)

    def bound(self, node: Node) -> Node:
        """Return the node after its term or vote changed: its loop waits for the disk (spec/cluster 2.2)."""
        return self.written(node)

    def sync(self, state: State, one: int) -> State | None:
        """Return the state after a sync of this node."""
        return put(state, one, self.written(state.nodes[one]))

    def durable(self, node: Node) -> Log:
        """Return the log that a node may vouch for."""
        return node.disk.log

    def crash(self, state: State, one: int) -> State | None:
        """End the process, or the machine, and start it again."""
        node = self.restarted(state.nodes[one])
        return put(state, one, node)._replace(crashes=state.crashes - 1)

    def restarted(self, node: Node) -> Node:
        """Return the node as it comes back: it has what is on its disk."""
        disk = node.disk
        return Node(
            disk.term, disk.vote, disk.log, disk.commit, disk.first, disk.voter, counted=node.counted,
            found=(None,) * len(node.found), disk=disk, copy=node.copy, sent=node.sent,
        )

    # Elections

    def majority(self, counted: int, nodes: int) -> bool:
        """Return whether these nodes are a majority of those that count."""
        return 2 * (nodes & counted).bit_count() > counted.bit_count()

    def held(self, node: Node) -> bool:
        """Return whether a node has the right to vote (spec/cluster 4.5, 4.6)."""
        return node.voter and not node.asks

    def stand(self, state: State, one: int, term: int, *, handover: bool = False) -> State | None:
        """Begin an election, for this term. What PreVotes forbid (spec/cluster 4.1) is in losses.py."""
        node = state.nodes[one]
        if term <= node.term or node.leads or not self.held(node):
            return None
        sent = node.sent[term]
        node = adopted(node, term)._replace(vote=one + 1, stands=True)
        node = self.bound(node)
        return put(state, one, self.says(node, term, sent._replace(
            asked=last(node.log), handover=handover, votes=sent.votes | 1 << one)))

    def as_new(self, node: Node, end: Position) -> bool:
        """Return whether a log that ends there is at least as new as the node's own."""
        return end >= last(node.log)

    def may_vote(self, node: Node, term: int, end: Position) -> bool:
        """Return whether a node may vote in this term for a log that ends there."""
        return self.held(node) and term > node.no_vote and end >= node.furthest and self.as_new(node, end)

    def free_vote(self, node: Node) -> bool:
        """Return whether the node has not voted in its term."""
        return node.vote == NOBODY

    def expects(self, node: Node, other: int, sent: Sent) -> bool:
        """Return whether a node heeds this candidate. PreVotes forbid it often (losses.py)."""
        return True

    def vote(self, state: State, one: int, other: int, term: int) -> State | None:
        """Vote for another node, which has asked for it."""
        node, asked = state.nodes[one], state.nodes[other].sent[term]
        if asked.asked is None or term < node.term or not self.expects(node, other, asked):
            return None
        if term > node.term:
            node = adopted(node, term)
        if node.leads or not self.may_vote(node, term, asked.asked) or not self.free_vote(node):
            return None
        sent = node.sent[term]
        node = self.bound(node._replace(vote=other + 1))
        return put(state, one, self.says(node, term, sent._replace(votes=sent.votes | 1 << other)))

    def votes_for(self, state: State, one: int, term: int) -> int:
        """Return who has voted for a node in a term."""
        return sum(1 << other for other, node in enumerate(state.nodes) if node.sent[term].votes >> one & 1)

    def lead(self, state: State, one: int) -> State | None:
        """Become the leader, and append the entry with which a leadership begins."""
        node = state.nodes[one]
        term, record = node.term, state.terms[node.term]
        if not node.stands or not self.majority(node.counted, self.votes_for(state, one, term)):
            return None
        log = (*node.log, entry(term, record.serial))
        state = put(state, one, self.kept(node._replace(log=log, leads=True, stands=False)))
        return put_term(state, term, record._replace(
            leaders=record.leaders | 1 << one, log=log if len(log) >= len(record.log) else record.log,
            commit=max(record.commit, node.commit), serial=record.serial + 1))

    # The log

    def propose(self, state: State, one: int, voters: int = 0) -> State | None:
        """Append what a client asks for; it is sent at once."""
        node = state.nodes[one]
        record = state.terms[node.term]
        if not node.leads:
            return None
        log = (*node.log, entry(node.term, record.serial, voters))
        state = put(state, one, self.kept(node._replace(log=log)))
        state = put_term(state, node.term, record._replace(log=log, serial=record.serial + 1))
        return state if voters else state._replace(entries=state.entries - 1)

    def appended(self, log: Log, theirs: Log, end: int) -> Log:
        """Return a log after it was given the leader's up to `end`: it is cut only where it differs."""
        return log if equal(log, theirs) >= end else theirs[:end]

    def compared(self, log: Log, theirs: Log, end: int) -> int:
        """Return up to where a log is known to equal the leader's after that: no commit index passes this."""
        return end

    def receive(self, state: State, one: int, term: int, end: int, commit: int) -> State | None:
        """Take in what the leader of a term has sent: entries up to `end`, and a commit index. Nothing of that is new
        in a heartbeat.
        """
        node, record = state.nodes[one], state.terms[term]
        if not record.leaders or term < node.term or (node.leads and term == node.term):
            return None
        if end > len(record.log):
            return None
        heard = self.heard(node if term == node.term else self.bound(adopted(node, term)))
        log = self.appended(heard.log, record.log, end)
        if commit > max(node.commit, min(record.commit, self.compared(log, record.log, end))):
            return None
        if log != heard.log:
            heard = self.kept(heard._replace(log=log, commit=max(heard.commit, commit)))
        elif commit > heard.commit:
            heard = self.noted(heard._replace(commit=commit))
        state = put(state, one, self.counting(heard, one))
        if not self.syncs:
            state = self.acknowledge(state, one, term) or state
        return state if state.nodes[one] != node else None

    def heard(self, node: Node) -> Node:
        """Return a node that has received a message of its term's leader: every earlier candidacy is dead for it."""
        return node._replace(stands=False, agreed=0)

    def vouched(self, node: Node, record: Term) -> int:
        """Return how much of the leader's log a node may acknowledge: what it has on its disk."""
        return equal(self.durable(node), record.log)

    def acknowledge(self, state: State, one: int, term: int) -> State | None:
        """Acknowledge what is on the disk, to the leader of the node's term."""
        node = state.nodes[one]
        sent = node.sent[term]
        if node.term != term or node.leads or not state.terms[term].leaders:
            return None
        match = self.vouched(node, state.terms[term])
        if self.counts(node):
            more = sent._replace(match=max(sent.match, match))
        else:
            more = sent._replace(caught_up=max(sent.caught_up, match))
        return put(state, one, self.says(node, term, more)) if more != sent else None

    def counts(self, node: Node) -> bool:
        """Return whether what a node acknowledges counts for a commit (spec/cluster 4.5)."""
        return self.held(node)

    def matches(self, state: State, term: int, index: int) -> int:
        """Return the nodes whose acknowledgements of this entry the leader of a term may count."""
        return sum(1 << one for one, node in enumerate(state.nodes) if node.sent[term].match >= index)

    def commits(self, node: Node, index: int) -> bool:
        """Return whether the leader may commit this entry, if enough have it: it is of its own term."""
        return term_of(node.log[index - 1]) == node.term

    def own(self, node: Node) -> int:
        """Return how much of a leader's own log counts."""
        return len(self.durable(node))

    def commit(self, state: State, one: int, index: int) -> State | None:
        """Commit all entries up to one; the leader's own disk must have them, too (spec/cluster 2.1)."""
        node = state.nodes[one]
        if not node.leads or not node.commit < index <= self.own(node) or not self.commits(node, index):
            return None
        have = self.matches(state, node.term, index) | 1 << one
        if not self.majority(node.counted, have):
            return None
        chosen = tuple(Chosen(one, node.term) for one in node.log[len(state.chosen):index])
        record = state.terms[node.term]
        state = put(state, one, self.counting(self.noted(node._replace(commit=index)), one))
        state = put_term(state, node.term, record._replace(commit=max(record.commit, index)))
        return state._replace(chosen=state.chosen + chosen)

    def normal(self, state: State) -> State:
        """Return the one state that stands for all with other names of nodes, or other messages that no node heeds."""
        return canonical(self.without_the_dead(state))

    def without_the_dead(self, state: State) -> State:
        """Return the state without messages that no node heeds: their terms, candidacies or leaders have ended."""
        oldest = min(node.term for node in state.nodes)
        standing = {(one, node.term) for one, node in enumerate(state.nodes) if node.stands}
        leading = {node.term for node in state.nodes if node.leads}
        counted = {term: sum(1 << one for one, of in standing if of == term) for _, term in standing}
        nodes = []
        for one, node in enumerate(state.nodes):
            sent = tuple([
                was if was == NOTHING_SENT else Sent(
                    was.asked if (one, term) in standing else None, was.handover and (one, term) in standing,
                    was.votes & counted.get(term, 0), *(was[3:] if term in leading else (0, 0)),
                ) for term, was in enumerate(node.sent)
            ])
            nodes.append(node if sent == node.sent else node._replace(sent=sent))
        terms = tuple([NOTHING_LED if number < oldest else term for number, term in enumerate(state.terms)])
        return state._replace(nodes=tuple(nodes), terms=terms)

    def counting(self, node: Node, one: int) -> Node:
        """Return a node after entries were executed: they may have changed by whom it counts (members.py)."""
        return node

    def announced(self, node: Node) -> bool:
        """Return whether a leader serves: it has executed the entry with which its leadership began."""
        return node.leads and bool(node.commit) and term_of(node.log[node.commit - 1]) == node.term

    def says(self, node: Node, term: int, sent: Sent) -> Node:
        """Return a node that has sent more in a term."""
        return node._replace(sent=(*node.sent[:term], sent, *node.sent[term + 1:]))


def adopted(node: Node, term: int) -> Node:
    """Return a node that has entered a later term: its role in the previous term has ended."""
    return node._replace(term=term, vote=NOBODY, leads=False, stands=False, offered=False,
                         found=(None,) * len(node.found))


def put(state: State, one: int, node: Node) -> State:
    """Return the state with another node in the place of this one."""
    return state._replace(nodes=(*state.nodes[:one], node, *state.nodes[one + 1:]))


def put_term(state: State, term: int, record: Term) -> State:
    """Return the state after the leader of a term has sent more."""
    return state._replace(terms=(*state.terms[:term], record, *state.terms[term + 1:]))
