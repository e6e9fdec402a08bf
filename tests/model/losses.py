"""Rules for nodes that have lost their disk, or were given an older copy of it (spec/cluster 4.1, 4.3, 4.5, 4.6).

A candidate asks before it stands, and its question has arrived, or is lost, before it stands (spec/model 1.4). The
answer of a follower to a heartbeat is a step of its own here, since a leader admits no node without new answers.
"""

from __future__ import annotations

from collections.abc import Iterator

from tests.model.rules import Rules, Step, adopted, put, put_term
from tests.model.state import Disk, Found, Node, Position, Sent, State, last


class Losses(Rules):
    """The rules with PreVotes, handing over, lost disks and admission."""

    wipes = True                # disks are lost
    copies = False              # older copies are put in the place of disks
    hands_over = False

    def _of_node(self, state: State, one: int) -> Iterator[Step]:
        node = state.nodes[one]
        for label, after in super()._of_node(state, one):
            if label[0] != "stand":
                yield label, after
        highest = min(max(node.term for node in state.nodes) + 1, len(state.terms) - 1)
        if not node.leads and self.may_ask(node):
            for term in range(node.term + 1, highest + 1):
                able = sum(1 << other for other in range(len(state.nodes)) if self.agrees(state, other, one, term))
                for agreeing in _subsets(able):
                    label = ("stand", one, term, agreeing)
                    yield from self._tried(label, self.stand_with(state, one, term, agreeing))
        if state.losses:
            if self.wipes:
                yield from self._tried(("lose the disk", one), self.wipe(state, one))
            if self.copies:
                yield from self._tried(("copy", one), self.copy(state, one))
        if node.copy is not None:
            yield from self._tried(("put back", one), self.put_back(state, one))

    def _of_two(self, state: State, one: int, other: int) -> Iterator[Step]:
        yield from super()._of_two(state, one, other)
        yield from self._tried(("answer", one, other), self.answer(state, one, other))
        yield from self._tried(("greet", one, other), self.greet(state, one, other))
        yield from self._tried(("find", one, other), self.find(state, one, other))
        yield from self._tried(("admit", one, other), self.admit(state, one, other))
        if self.hands_over:
            yield from self._tried(("hand over", one, other), self.hand_over(state, one, other))
            yield from self._tried(("take over", one), self.take_over(state, one))

    # PreVotes

    def may_ask(self, node: Node) -> bool:
        """Return whether a node asks for PreVotes: not while a longer log may be what it has forgotten."""
        return self.held(node) and last(node.log) >= node.furthest

    def agrees(self, state: State, one: int, other: int, term: int) -> bool:
        """Return whether a node would agree that another one stands in this term."""
        node, end = state.nodes[one], last(state.nodes[other].log)
        return one != other and not node.leads and self.held(node) and term - 1 >= max(node.term, node.no_vote) and (
            end >= node.furthest and self.as_new(node, end))

    def stand_with(self, state: State, one: int, term: int, agreeing: int) -> State | None:
        """Stand after these nodes have agreed."""
        node = state.nodes[one]
        if not self.majority(node.counted, agreeing | 1 << one):
            return None
        for other, friend in enumerate(state.nodes):
            if agreeing >> other & 1:
                state = put(state, other, friend._replace(agreed=friend.agreed | 1 << one))
        return self.stand(state, one, term)

    def expects(self, node: Node, other: int, sent: Sent) -> bool:
        return bool(node.agreed >> other & 1) or sent.handover

    def answer(self, state: State, one: int, other: int) -> State | None:
        """Answer a leader's heartbeat, which is a promise: every candidacy before it is dead."""
        node, leader = state.nodes[one], state.nodes[other]
        if not leader.leads or node.term > leader.term or (node.leads and node.term == leader.term):
            return None
        found = tuple(
            None if note is None else note._replace(answered=note.answered | self.counts(node) << one)
            for note in leader.found)
        heard = self.heard(node if node.term == leader.term else self.bound(adopted(node, leader.term)))
        if heard == node and found == leader.found:
            return None
        return put(put(state, one, heard), other, leader._replace(found=found))

    # Handing over

    def hand_over(self, state: State, one: int, other: int) -> State | None:
        """Ask a node that has the whole log to take over. From then on there is no lease, and no node is admitted."""
        node, record = state.nodes[one], state.terms[state.nodes[one].term]
        if not node.leads or state.nodes[other].sent[node.term].match < len(node.log) or record.heirs >> other & 1:
            return None
        state = put(state, one, node._replace(offered=True))
        return put_term(state, node.term, record._replace(heirs=record.heirs | 1 << other))

    def take_over(self, state: State, one: int) -> State | None:
        """Stand because the leader of the current term has asked for it: no node needs to agree."""
        node = state.nodes[one]
        if not state.terms[node.term].heirs >> one & 1 or node.term + 1 == len(state.terms) or node.leads:
            return None
        return self.stand(state, one, node.term + 1, handover=True)

    # Losses

    def wipe(self, state: State, one: int) -> State | None:
        """Lose a disk. The node comes back with an empty one, which gives no right to vote."""
        return self._lost(state, one, self.emptied(state.nodes[one]))

    def emptied(self, node: Node) -> Disk:
        """Return the disk of a node that has lost its own."""
        return Disk(voter=False)

    def copy(self, state: State, one: int) -> State | None:
        """Copy a disk while all is well."""
        if any(node.copy is not None for node in state.nodes):
            return None
        return put(state, one, state.nodes[one]._replace(copy=state.nodes[one].disk))

    def put_back(self, state: State, one: int) -> State | None:
        """Put the copy in the place of the disk: what was written since is lost."""
        node = state.nodes[one]
        assert node.copy is not None
        return self._lost(state, one, node.copy) if node.copy != node.disk else None

    def _lost(self, state: State, one: int, disk: Disk) -> State:
        node = self.restarted(state.nodes[one]._replace(disk=disk, copy=None))
        state = put(state._replace(losses=max(0, state.losses - 1)), one, node)
        nodes = tuple(
            other._replace(found=(*other.found[:one], None, *other.found[one + 1:])) if other.found[one] else other
            for other in state.nodes)
        return state._replace(nodes=nodes)

    def restarted(self, node: Node) -> Node:
        return super().restarted(node)._replace(asks=self.must_ask(node))

    def must_ask(self, node: Node) -> bool:
        """Return whether a node that is started asks the others what it may have forgotten."""
        return node.disk.voter

    def enough(self, greeted: int, others: int) -> bool:
        """Return whether these of the others were enough to ask."""
        return greeted == others

    def furthest(self, node: Node, end: Position) -> Position:
        """Return the end of the longest log that a node knows of, after a greeting."""
        return max(node.furthest, end)

    def no_vote(self, node: Node, term: int) -> int:
        """Return the last term in which a node does not vote, after a greeting from this term."""
        return max(node.no_vote, term)

    def greeted_term(self, node: Node, term: int) -> Node:
        """Return a node that was greeted from this term."""
        return self.bound(adopted(node, term)) if term > node.term else node

    def greet(self, state: State, one: int, other: int) -> State | None:
        """Greet a node that was started: another node sends its term and the end of its log."""
        node, friend = state.nodes[one], state.nodes[other]
        if not node.asks or node.greeted >> other & 1:
            return None
        node = self.greeted_term(node, friend.term)
        greeted = node.greeted | 1 << other
        others = node.counted & ~(1 << one)
        return put(state, one, node._replace(
            greeted=greeted, furthest=self.furthest(node, last(friend.log)), no_vote=self.no_vote(node, friend.term),
            asks=not self.enough(greeted, others)))

    # Admission

    def find(self, state: State, one: int, other: int) -> State | None:
        """Note, as the leader, that a node has no right to vote."""
        node = state.nodes[one]
        if not node.leads or self.held(state.nodes[other]) or node.found[other] is not None:
            return None
        found = (*node.found[:other], Found(len(node.log)), *node.found[other + 1:])
        return put(state, one, node._replace(found=found))

    def may_admit(self, state: State, one: int, other: int, found: Found) -> bool:
        """Return whether a leader may admit a node: it leads without it, and the node has what the leader had."""
        node, sent = state.nodes[one], state.nodes[other].sent[state.nodes[one].term]
        answered = found.answered & ~(1 << other) | 1 << one
        return not node.offered and sent.caught_up >= found.target and self.majority(node.counted, answered)

    def admit(self, state: State, one: int, other: int) -> State | None:
        """Give a node the right to vote. In the term of its admission it does not vote."""
        node, friend = state.nodes[one], state.nodes[other]
        found = node.found[other]
        if not node.leads or found is None or friend.term != node.term or self.held(friend):
            return None
        if not self.may_admit(state, one, other, found):
            return None
        state = put(state, one, node._replace(found=(*node.found[:other], None, *node.found[other + 1:])))
        return put(state, other, self.admitted(friend, one))

    def admitted(self, node: Node, leader: int) -> Node:
        """Return a node that was given the right to vote by its leader."""
        node = node._replace(voter=True, asks=False, furthest=(0, 0), no_vote=max(node.no_vote, node.term),
                             vote=leader + 1)
        return self.written(node)


def _subsets(members: int) -> Iterator[int]:
    """All sets of these members."""
    subset = members
    while True:
        yield subset
        if not subset:
            return
        subset = (subset - 1) & members
