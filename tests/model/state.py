"""The states of the model: nodes with disks, and the messages that were ever sent, in a form that stays small.

No message is kept as such. A message may arrive at any time after it was sent, twice, late, or never; so it is enough
to know which ones have been sent. All that the leader of a term sends are pieces of one log that only grows, with a
commit index that only rises (`Term`). A candidate asks for votes with one position in a log, a node votes, and what a
node acknowledges only rises within a term (`Sent`). So a state has no queues, and stands for all orders in which these
messages arrive: more than TCP connections allow.

Nodes are numbers from 0, sets of them bits. An entry is one number: its term, its serial number among all entries of
that term, and, if it changes the members, the new voters as bits. What only the invariants look at is marked (ghost).
"""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

SERIAL_BITS, VOTER_BITS = 16, 8
TERM_SHIFT = SERIAL_BITS + VOTER_BITS
NOBODY = 0                      # in `vote`; node n is n + 1

Log = tuple[int, ...]
Position = tuple[int, int]      # where a log ends: term and index of its last entry


def entry(term: int, serial: int, voters: int = 0) -> int:
    """Return an entry; `voters`: the voters that it brings, 0 if it changes no members."""
    return term << TERM_SHIFT | serial << VOTER_BITS | voters


def term_of(one: int) -> int:
    """Return the term of an entry."""
    return one >> TERM_SHIFT


def voters_of(one: int) -> int:
    """Return the voters that an entry brings, 0 for most entries."""
    return one & (1 << VOTER_BITS) - 1


def last(log: Log) -> Position:
    """Return where a log ends."""
    return (log[-1] >> TERM_SHIFT, len(log)) if log else (0, 0)


def equal(one: Log, other: Log) -> int:
    """Return the number of entries by which both logs begin."""
    if one[:len(other)] == other[:len(one)]:
        return min(len(one), len(other))
    index = 0
    while one[index] == other[index]:
        index += 1
    return index


class Disk(NamedTuple):
    """The disk of a node, as it finds it at its start."""

    term: int = 0
    vote: int = NOBODY
    log: Log = ()
    commit: int = 0
    first: int = 0              # the entries up to here are in the snapshot only
    voter: bool = True          # the node has the right to vote


class Sent(NamedTuple):
    """All that a node has sent in a term."""

    asked: Position | None = None       # as a candidate: where its log ended
    handover: bool = False              # the leader before had named it
    votes: int = 0                      # for whom it has voted; for more than one only by a mistake
    match: int = 0                      # the longest part of the leader's log that it has acknowledged
    caught_up: int = 0                  # the same, acknowledged without the right to vote


class Found(NamedTuple):
    """A leader's notes about a node without the right to vote."""

    target: int                 # the end of the leader's log when the node was found
    answered: int = 0           # nodes that have answered something that was sent after that


class Node(NamedTuple):
    """A node: its memory, its disk, and what it has sent."""

    term: int = 0
    vote: int = NOBODY
    log: Log = ()
    commit: int = 0
    first: int = 0
    voter: bool = True
    leads: bool = False
    stands: bool = False                # it is a candidate in `term`
    counted: int = 0                    # leader: the voters by which it counts; they change when it applies an entry
    offered: bool = False               # leader: it has asked another node to take over
    agreed: int = 0                     # PreVotes that it has given since the last message from a leader
    asks: bool = False                  # it was started, and the others have not all greeted it
    greeted: int = 0
    furthest: Position = (0, 0)         # the end of the longest log that it has learned of since its start
    no_vote: int = 0                    # it does not vote in terms up to this one
    found: tuple[Found | None, ...] = ()
    disk: Disk = Disk()
    copy: Disk | None = None            # an older copy of its disk
    sent: tuple[Sent, ...] = ()         # by term


class Term(NamedTuple):
    """All that the leader of a term has sent."""

    leaders: int = 0            # who was elected; one node
    log: Log = ()
    commit: int = 0
    serial: int = 0             # of the next entry (ghost)
    heirs: int = 0              # nodes that it has asked to take over


class Chosen(NamedTuple):
    """A committed entry (ghost). `term`: of the leader that committed it."""

    one: int
    term: int


class State(NamedTuple):
    """All nodes, all terms from 1 on (terms[0] is empty), and the remaining budgets."""

    nodes: tuple[Node, ...]
    terms: tuple[Term, ...]
    chosen: tuple[Chosen, ...] = ()
    entries: int = 0            # that clients may still propose
    crashes: int = 0
    losses: int = 0
    changes: int = 0            # of members


def start(nodes: int, terms: int, *, entries: int, crashes: int, losses: int = 0, changes: int = 0,
          voters: int = 0) -> State:
    """Return the state of a cluster that has just been founded.

    `voters`: the founders, which the first entry of each log names; 0: all nodes, and no entry does.
    """
    log = (entry(0, 0, voters),) if voters else ()
    node = Node(
        log=log, commit=len(log), counted=voters or (1 << nodes) - 1, found=(None,) * nodes,
        disk=Disk(log=log, commit=len(log)), sent=(Sent(),) * (terms + 1))
    chosen = tuple(Chosen(one, 0) for one in log)
    return State((node,) * nodes, (Term(),) * (terms + 1), chosen, entries, crashes, losses, changes)


# Symmetry: states that differ only by the names of the nodes are one


def _key(node: Node) -> tuple[object, ...]:
    """Return the part of a node's state that names no other node."""
    return (
        node.term, _nameless(node.log), node.commit, node.leads, node.stands, node.asks, node.voter, node.disk.term,
        _nameless(node.disk.log), node.disk.commit, node.vote != NOBODY,
        tuple((sent.asked or (0, 0), sent.match, sent.caught_up, sent.votes != 0) for sent in node.sent),
    )


def _nameless(log: Log) -> Log:
    """Return a log without the voters that its entries bring. The first entry shows whether any does."""
    return tuple([one & -1 << VOTER_BITS for one in log]) if log and voters_of(log[0]) else log


def canonical(state: State) -> State:
    """Return the one state that stands for all that differ from this one by the names of nodes only."""
    keys = [_key(node) for node in state.nodes]
    order = sorted(range(len(keys)), key=keys.__getitem__)
    groups: list[list[int]] = []
    for number in order:
        if groups and keys[groups[-1][0]] == keys[number]:
            groups[-1].append(number)
        else:
            groups.append([number])
    orders: list[list[int]] = [[]]
    for group in groups:
        orders = [[*done, *more] for done in orders for more in permutations(group)]
    if len(orders) == 1:
        return renamed(state, orders[0])
    return min((renamed(state, one) for one in orders), key=hash)


def renamed(state: State, order: list[int]) -> State:
    """Return the same state with other names: the first node is the one that was order[0]."""
    if order == sorted(order):
        return state
    new = [0] * len(order)
    for number, old in enumerate(order):
        new[old] = number
    bits = _bits(tuple(new))
    moves = any(node.log and voters_of(node.log[0]) for node in state.nodes)

    def log(entries: Log) -> Log:
        return tuple(one - voters_of(one) + bits[voters_of(one)] for one in entries) if moves else entries

    def vote(one: int) -> int:
        return new[one - 1] + 1 if one else NOBODY

    def disk(one: Disk) -> Disk:
        return one._replace(vote=vote(one.vote), log=log(one.log))

    def node(one: Node) -> Node:
        found = tuple(
            None if one.found[old] is None else one.found[old]._replace(answered=bits[one.found[old].answered])  # type: ignore[union-attr]
            for old in order
        ) if any(one.found) else one.found
        sent = tuple(was._replace(votes=bits[was.votes]) if was.votes else was for was in one.sent)
        return one._replace(
            vote=vote(one.vote), log=log(one.log), counted=bits[one.counted], agreed=bits[one.agreed],
            greeted=bits[one.greeted], found=found, disk=disk(one.disk),
            copy=None if one.copy is None else disk(one.copy), sent=sent,
        )

    return state._replace(
        nodes=tuple(node(state.nodes[old]) for old in order),
        terms=tuple(
            term._replace(leaders=bits[term.leaders], log=log(term.log), heirs=bits[term.heirs])
            for term in state.terms),
        chosen=tuple(one._replace(one=log((one.one,))[0]) for one in state.chosen) if moves else state.chosen,
    )


_BITS: dict[tuple[int, ...], list[int]] = {}


def _bits(new: tuple[int, ...]) -> list[int]:
    """The new name of each set of nodes."""
    if new not in _BITS:
        _BITS[new] = [
            sum(1 << new[old] for old in range(len(new)) if members >> old & 1) for members in range(1 << len(new))
        ]
    return _BITS[new]
