"""The comparison of the code with the model: each step that real nodes took must be one that the model allows.

The nodes of the simulation are the product, and write down what they do (`steps` of tests/sim/world/trace.py): what
their journals take in, when that is on the disk, and what leaves them. The model follows, step by step. Some steps of
the model are not written, and follow from the next one that is: that a candidate was elected shows when it appends, and
a piece of a log arrives when its first entry is appended.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.model.invariants import leader_completeness
from tests.model.rules import Rules, adopted, put
from tests.model.state import NOBODY, Chosen, Disk, Log, Node, State, Term, entry, equal, last, start, term_of
from tests.sim.world.trace import Violation
from tests.sim.world.world import World

Written = tuple[Any, ...]           # a step: its kind, the name of its node, and what it is about
Image = tuple[int, int, Log]        # what a disk may hold: term, vote and log
TERMS_MAX = 400
FOR_EVER = 1 << 30              # a budget that lasts


class Forbidden(Exception):
    """A real node took a step that the model does not allow."""


class TracedRules(Rules):
    """The rules, where a changed term and the disk that knows of it are two steps, as in the code."""

    syncs = True

    def bound(self, node: Node) -> Node:
        """Return the node as it is: its sync is a step of its own."""
        return node

    def votes_for(self, state: State, one: int, term: int) -> int:
        """Return who has voted for a candidate: itself too, which needs no message."""
        own = state.nodes[one].term == term and state.nodes[one].vote == one + 1
        return super().votes_for(state, one, term) | own << one


class Comparison:
    """Follows the steps of a run. The library's first entry (index 1, term 0) is in each log from the beginning."""

    def __init__(self, names: Iterable[str], founders: Iterable[str]) -> None:
        """`names`: all nodes that there may ever be; `founders`: the first voters."""
        self.rules = TracedRules()
        self.names = sorted(names)
        self._voters = [(0, self._bits(founders))]      # the configurations, each with the entry that brought it
        self.followed = 0                       # steps that the model took
        state = start(len(self.names), TERMS_MAX, entries=FOR_EVER, crashes=FOR_EVER)
        first = (entry(0, 0),)
        node = state.nodes[0]._replace(
            log=first, commit=1, voter=False, counted=self._voters[0][1], disk=Disk(log=first, commit=1, voter=False))
        self.state = state._replace(nodes=(node,) * len(self.names), chosen=(Chosen(first[0], 0),))
        # What each disk may hold: the states since the last one that is known to be on it.
        self._images: list[list[Image]] = [[(0, NOBODY, first)] for _ in self.names]
        self._cleared = [False] * len(self.names)
        # By term: how much of the leader's log a node had when it went on to a later term.
        self._had: list[dict[int, int]] = [{} for _ in self.names]
        self._lost = [False] * len(self.names)          # the disk was lost, and no process was started since
        self._past: list[list[Image]] = [[(0, NOBODY, first)] for _ in self.names]

    def _bits(self, names: Iterable[str]) -> int:
        return sum(1 << self.names.index(name) for name in names)

    def follow(self, steps: Iterable[Written]) -> None:
        """Take all steps. Raises Forbidden at the first that the model does not allow."""
        for number, (kind, name, *about) in enumerate(steps):
            one = self.names.index(name)
            try:
                getattr(self, f"_{kind.replace(' ', '_')}")(one, *about)
            except Forbidden as forbidden:
                node = self.state.nodes[one]._replace(sent=(), log=(), disk=Disk())
                raise Forbidden(f"step {number}: {name} {kind} {about}: {forbidden}; {node}") from None
            self._remember(one)
            self.followed += 1

    def _remember(self, one: int) -> None:
        node, images = self.state.nodes[one], self._images[one]
        image = node.term, node.vote, node.log
        if images[-1] != image:
            images.append(image)
            self._past[one].append(image)

    def _taken(self, state: State | None, why: str) -> None:
        if state is None:
            raise Forbidden(why)
        self.state = state

    def _put(self, one: int, **changes: Any) -> None:
        self.state = put(self.state, one, self.state.nodes[one]._replace(**changes))

    def _leader_of(self, node: Node) -> Term:
        """The record of the leader that a node follows."""
        return self.state.terms[node.term]

    # Starts, disks

    def _loses_its_disk(self, one: int) -> None:
        """Empty the disk, or put an older copy in its place."""
        self._lost[one] = True

    def _starts(
        self, one: int, term: int, vote: str | None, voter: bool, commit: int, first: int, terms: tuple[int, ...],
    ) -> None:
        """Let a process read its disk: it holds what the node had at some moment since the last completed sync."""
        number = NOBODY if vote is None else self.names.index(vote) + 1
        found = first - 1 + len(terms)
        if not terms:
            if self._lost[one]:
                self._put_empty(one)
            return                              # the first start, on this disk
        images = [*self._images[one], *self._past[one]] if self._lost[one] else self._images[one]
        for known_term, known_vote, log in images:
            same = known_term == term and known_vote == number and len(log) == found
            if same and tuple(map(term_of, log[first - 1:])) == terms:
                break
        else:
            raise Forbidden("the disk holds what was not there")
        if log[:commit] != tuple(chosen.one for chosen in self.state.chosen[:commit]):
            raise Forbidden("what it takes for committed was not committed")
        node = self.rules.restarted(self.state.nodes[one]._replace(disk=Disk(term, number, log, commit, 0, voter)))
        self.state = put(self.state, one, self._counting(node))
        self._images[one] = [(term, number, log)]
        self._cleared[one] = self._lost[one] = False
        self._had[one].clear()

    def _put_empty(self, one: int) -> None:
        first = (entry(0, 0),)
        node = self.rules.restarted(self.state.nodes[one]._replace(disk=Disk(0, NOBODY, first, 1, 0, False)))
        self.state = put(self.state, one, node)
        self._images[one], self._cleared[one], self._lost[one] = [(0, NOBODY, first)], False, False

    def _may_vote(self, one: int) -> None:
        """Give the node the right to vote: as a founder, or by its leader (spec/cluster 4.5)."""
        node = self.state.nodes[one]
        record = self.state.terms[node.term]
        if node.term and node.vote and record.leaders != 1 << node.vote - 1:
            raise Forbidden("nobody who leads has admitted it")
        self._put(one, voter=True)

    def _counting(self, node: Node) -> Node:
        """Return a node that counts by the members that it knows; a leader that was removed counts as before."""
        counted = next(voters for index, voters in reversed(self._voters) if index <= node.commit)
        one = next((one for one, other in enumerate(self.state.nodes) if other.sent is node.sent), None)
        removed = node.leads and one is not None and not counted >> one & 1
        return node if removed else node._replace(counted=counted)

    def _changes_members(self, one: int, index: int, voters: tuple[str, ...]) -> None:
        """Note that the first node has executed this entry, after which these are the voters."""
        bits = self._bits(voters)
        if bits == self._voters[-1][1]:
            return
        if (bits ^ self._voters[-1][1]).bit_count() > 1:
            raise Forbidden("more than one voter is changed at once")
        if self.state.nodes[one].leads and not self._voters[-1][1] >> one & 1:
            raise Forbidden("a leader that was removed changes the members")
        self._voters.append((index, bits))
        for other, node in enumerate(self.state.nodes):
            if node.commit >= index and not (node.leads and not bits >> other & 1):
                self._put(other, counted=bits)

    def _syncs(self, one: int, durable: int, term: int, vote: str | None) -> None:
        node, number = self.state.nodes[one], NOBODY if vote is None else self.names.index(vote) + 1
        image = term, number, node.log[:durable]
        images = self._images[one]
        if image in images:
            del images[:images.index(image)]
        self._put(one, disk=Disk(term, number, node.log[:durable], node.commit, 0, node.voter))

    # Elections

    def _adopts(self, one: int, term: int, vote: str | None) -> None:
        node = self.state.nodes[one]
        if term < node.term:
            raise Forbidden("the term falls")
        if term > node.term:
            self._had[one][node.term] = equal(node.log, self._leader_of(node).log)
        if vote is None:
            if term > node.term + 1 and term > max(other.term for other in self.state.nodes):
                raise Forbidden("nobody has come to this term")
            self.state = put(self.state, one, adopted(node, term))
        elif vote == self.names[one]:
            if term != node.term + 1 and (term != node.term or node.vote):
                raise Forbidden("it is no candidate for the next term")
            self.state = put(self.state, one, adopted(node, term)._replace(vote=one + 1, stands=True))
        else:
            other = self.names.index(vote)
            if self.state.terms[term].leaders == 1 << other and term == node.term:
                self._put(one, vote=other + 1)          # its leader has admitted it (spec/cluster 4.5): no further vote
                return
            asked = self.state.nodes[other].sent[term]
            if asked.asked is None:
                raise Forbidden("nobody has asked for this vote")
            if not (self.rules.may_vote(node, term, asked.asked) and self.rules.free_vote(node)) or term != node.term:
                raise Forbidden("it must not vote for this node")
            self._put(one, vote=other + 1)

    def _asks(self, one: int, term: int, index: int, last_term: int) -> None:
        node = self.state.nodes[one]
        self._durable_vote(node, one, term)
        sent = node.sent[term]
        if sent.asked not in (None, (last_term, index)) or (node.stands and (last_term, index) != last(node.log)):
            raise Forbidden("its log ends elsewhere")
        more = sent._replace(asked=(last_term, index), votes=sent.votes | 1 << one)
        self.state = put(self.state, one, self.rules.says(node, term, more))

    def _votes(self, one: int, candidate: str, term: int) -> None:
        node, other = self.state.nodes[one], self.names.index(candidate)
        self._durable_vote(node, other, term)
        sent = node.sent[term]
        more = sent._replace(votes=sent.votes | 1 << other)
        if more.votes & more.votes - 1:
            raise Forbidden("it has voted for another node in this term")
        self.state = put(self.state, one, self.rules.says(node, term, more))

    @staticmethod
    def _durable_vote(node: Node, other: int, term: int) -> None:
        if node.disk.term < term or (node.disk.term == term and node.disk.vote != other + 1):
            raise Forbidden("its disk does not know of this vote")

    def _leads(self, one: int, term: int) -> None:
        node = self.state.nodes[one]
        if node.term == term and not node.leads:
            raise Forbidden("it was not elected")

    def _holds_a_lease(self, one: int, term: int) -> None:
        later = [number for number, record in enumerate(self.state.terms) if record.leaders and number > term]
        if later:
            raise Forbidden(f"another node was elected in term {later[0]}")

    # Logs

    def _appends(self, one: int, index: int, term: int) -> None:
        node = self.state.nodes[one]
        record = self._leader_of(node)
        if index == 1 and term == 0:
            return
        if term == node.term and (node.leads or (node.stands and record.leaders in (0, 1 << one))):
            if not node.leads:
                self._is_elected(one)
            else:
                self._taken(self.rules.propose(self.state, one), "it does not lead")
            if len(self.state.nodes[one].log) != index:
                raise Forbidden("the entry has another index")
            return
        if not index <= len(record.log) or term_of(record.log[index - 1]) != term:
            raise Forbidden("its leader has sent no such entry")
        if self._cleared[one]:
            if record.commit < index:
                raise Forbidden("a snapshot holds what its leader has not committed")
            if equal(node.log, record.log) > index:
                raise Forbidden("for a snapshot it gives up a log that is its leader's and longer")
            self._cleared[one] = False
            self._put(one, log=record.log[:index])
        elif len(node.log) != index - 1 or equal(node.log, record.log) != index - 1:
            raise Forbidden("the entries before are not its leader's")
        else:
            self._taken(self.rules.receive(self.state, one, node.term, index, node.commit), "it follows nobody")
            if self.state.nodes[one].log != record.log[:index]:
                raise Forbidden("the model has another log")

    def _is_elected(self, one: int) -> None:
        node = self.state.nodes[one]
        if self.state.terms[node.term].leaders:
            raise Forbidden("it has led in this term before")
        self._taken(self.rules.lead(self.state, one), "no majority has voted for it")
        if not leader_completeness(self.rules, self.state):
            raise Forbidden("it lacks a committed entry")

    def _cuts(self, one: int, index: int) -> None:
        node = self.state.nodes[one]
        record = self._leader_of(node)
        if index > len(node.log):
            return
        if equal(node.log, record.log) != index - 1 or len(record.log) < index:
            raise Forbidden("it cuts its log where that does not differ from its leader's")
        if index <= node.commit:
            raise Forbidden("it cuts a committed entry")
        self._put(one, log=node.log[:index - 1])

    def _clears(self, one: int) -> None:
        self._cleared[one] = True

    def _acknowledges(self, one: int, term: int, index: int, held: bool) -> None:
        node, record = self.state.nodes[one], self.state.terms[term]
        if not record.leaders:
            raise Forbidden("nobody leads in this term")
        # In one turn a node may take in entries, hear of a later leader, and have them cut. Its answer to the earlier
        # leader leaves then, and is true: it had them before it took part in the later term, which is on its disk. No
        # majority can have them, as that later leader was elected without them.
        before = self._had[one].get(term, 0) if node.disk.term > term else 0
        if index > max(before, equal(node.disk.log, record.log)):
            raise Forbidden("this is not on its disk, or is not its leader's")
        sent = node.sent[term]
        if held and not node.voter:
            raise Forbidden("it has no right to vote")
        more = sent._replace(match=max(sent.match, index)) if held else sent
        self.state = put(self.state, one, self.rules.says(node, term, more))

    def _commits(self, one: int, index: int) -> None:
        node = self.state.nodes[one]
        if index <= node.commit:
            return
        if node.leads and index > len(self.state.chosen):
            self._taken(self.rules.commit(self.state, one, index), "no majority has this entry on its disk")
            self.state = put(self.state, one, self._counting(self.state.nodes[one]))
            return
        chosen = tuple(one.one for one in self.state.chosen[:index])
        if len(chosen) < index or node.log[:index] != chosen:
            raise Forbidden("this was not committed")
        self.state = put(self.state, one, self._counting(node._replace(commit=index)))


def compared_run(seed: int, *, broken: bool = False, **fixed: Any) -> tuple[int, str]:
    """Run a seed of the simulation; returns the number of steps, and why one of them is forbidden, "" if none is.

    `broken`: a promise may be broken in this run, which ends there. `fixed`: fields of the plan that are not drawn.
    """
    world = World(seed, **fixed)
    steps: list[Written] = []
    world.trace.steps = steps
    founders = [name for name, node in world.nodes.items() if node.configured]
    try:
        world.run()
    except Violation:
        if not broken:
            raise
    try:
        Comparison(world.nodes, founders).follow(steps)
    except Forbidden as forbidden:
        return len(steps), str(forbidden)
    return len(steps), ""
