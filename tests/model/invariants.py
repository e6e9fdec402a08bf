"""The invariants of the model: the promises of spec/cluster 2.1, and what Raft's proof rests on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from tests.model.rules import Rules
from tests.model.state import Log, State, equal, term_of

Invariant = Callable[[Rules, State], bool]


def one_leader_a_term(rules: Rules, state: State) -> bool:
    """No two nodes are elected in one term, and none twice."""
    return all(term.leaders & term.leaders - 1 == 0 for term in state.terms)


def log_matching(rules: Rules, state: State) -> bool:
    """Two logs with an entry of the same index and term are equal up to there."""
    logs = list({*(node.log for node in state.nodes), *(term.log for term in state.terms if term.log)})
    return all(_match(one, other) for place, one in enumerate(logs) for other in logs[place + 1:])


def _match(one: Log, other: Log) -> bool:
    begin = equal(one, other)
    return all(term_of(a) != term_of(b) for a, b in zip(one[begin:], other[begin:], strict=False))


def leader_completeness(rules: Rules, state: State) -> bool:
    """Check that the leader of a term has every entry that was committed in an earlier one."""
    for number, term in enumerate(state.terms):
        if term.leaders:
            for index, chosen in enumerate(state.chosen):
                if chosen.term < number and (len(term.log) <= index or term.log[index] != chosen.one):
                    return False
    return True


def state_machine_safety(rules: Rules, state: State) -> bool:
    """Check that each node has executed what was committed, in this order."""
    chosen = tuple(one.one for one in state.chosen)
    return all(
        node.commit <= len(node.log) and node.log[:node.commit] == chosen[:node.commit] for node in state.nodes)


def committed_is_kept(rules: Rules, state: State) -> bool:
    """Each committed entry is on the disks of a majority."""
    chosen = tuple(one.one for one in state.chosen)
    return all(
        2 * sum(node.disk.log[:end] == chosen[:end] for node in state.nodes) > len(state.nodes)
        for end in range(1, len(chosen) + 1))


def promises_are_kept(rules: Rules, state: State) -> bool:
    """A node votes once in a term, remembers each term it took part in, and has on its disk what it acknowledged."""
    for node in state.nodes:
        for term, sent in enumerate(node.sent):
            if sent.votes & sent.votes - 1 or ((sent.votes or sent.match) and node.disk.term < term):
                return False
            if node.disk.term == term and equal(node.disk.log, state.terms[term].log) < sent.match:
                return False
    return True


def serving_is_exact(rules: Rules, state: State) -> bool:
    """A leader that serves has executed all that was committed in earlier terms."""
    for node in state.nodes:
        if rules.announced(node) and any(one.term < node.term for one in state.chosen[node.commit:]):
            return False
    return True


ALWAYS: tuple[Invariant, ...] = (
    one_leader_a_term, log_matching, leader_completeness, state_machine_safety, serving_is_exact,
)
DURABLE: tuple[Invariant, ...] = (*ALWAYS, committed_is_kept)           # where no disk is lost,
WHOLE_DISKS: tuple[Invariant, ...] = (*DURABLE, promises_are_kept)      # and with what the proof needs besides


def broken(rules: Any, invariants: tuple[Callable[[Any, Any], bool], ...], state: Any) -> Iterator[str]:
    """Yield the names of the invariants that do not hold in a state."""
    for invariant in invariants:
        if not invariant(rules, state):
            yield invariant.__name__.replace("_", " ")
