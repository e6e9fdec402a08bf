"""The checks of every run, whatever fails.

The first node that applies an entry writes history; all others, and the same node after a restart, must repeat it. The
history is executed a second time by the plain model of the queue that core is tested against. So the promises about
jobs (no acknowledged one lost, DONE final, no two leases) follow from: history never changes, the model agrees with
each reply, and every answer a client got is the one in the history; at the end of a run the model must be empty
(world/ending.py). What the model itself might misunderstand is judged by the examples of tests/core, and by the chaos
checker from what clients saw.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from sockpqd.cluster.driver import Driver
from sockpqd.core import (
    FEATURE_LEVEL,
    FIRST_LEVEL,
    GAP,
    ChangeMember,
    Entry,
    Event,
    Fragment,
    FragmentsMissing,
    HandedMany,
    Lead,
    MemberChange,
    MirrorChunk,
    MirrorEntries,
    Operation,
    RaiseLevel,
    Reply,
    Results,
    Resume,
    Tick,
    decode_entry,
    encode_operation,
)
from tests.core.helpers.agreement import lines_of
from tests.sim.clients.outcomes import Outcome
from tests.sim.oracles.configurations import Configurations
from tests.sim.oracles.groups import GroupLaws
from tests.sim.oracles.occurrences import Occurrences
from tests.sim.oracles.reference_model import Reference, Remembered
from tests.sim.world.digest_codes import Kind, node_number
from tests.sim.world.trace import Trace, Violation

# Proposed by the leader itself, not by a client or an operator, and without an answer for these.
LEADERS_OWN = (Lead, Resume, Tick, RaiseLevel, MirrorEntries, MirrorChunk)


def _is_leaders_own(operation: Operation) -> bool:
    match operation:
        case Fragment():
            return not operation.last
        case ChangeMember():
            return operation.change is MemberChange.PROMOTE
    return isinstance(operation, LEADERS_OWN)


class Past(NamedTuple):
    """An applied entry, with its outcome."""

    now_ms: int
    seed: int
    operations: list[Operation]
    replies: list[Reply]
    events: list[Event]
    event_seq: int                  # after the entry


class Checks:
    """Collects what nodes and clients saw; raises Violation at the first contradiction."""

    def __init__(self, trace: Trace, founders: tuple[str, ...] = (), *, grouped: bool = False) -> None:
        self._trace = trace
        self.groups = GroupLaws() if grouped else None
        self.model = Reference()
        self.configurations = Configurations(founders)
        self.history: dict[int, Past] = {}
        self._occurrences = Occurrences(self.model, trace.seen)
        self._index_of: dict[int, int] = {}             # an entry's seed -> its index
        self._outcomes: dict[Outcome, None] = {}        # of all entries that were given to Raft
        self._launched: set[int] = set()
        self._leaders: dict[int, str] = {}
        self._elected: dict[int, int] = {}              # term -> what its leader had applied when it was elected
        self._entries: dict[tuple[int, int], tuple[bytes, int | None]] = {}
        self._states: dict[int, bytes] = {}
        self.terms: dict[int, int] = {}                 # of committed entries

    # While it runs

    def turned(self, name: str, driver: Driver, before: int) -> bool:
        """One leader per term, which has everything that was committed before; who is no member does not serve.

        `before`: the last entry that the node had applied before the turn that has ended. Returns whether a leadership
        began in it.
        """
        replica = driver.replica
        left = self.configurations.left.get(name)
        if left is not None and driver.leadership.serving:
            learns = before < left <= driver.machine.index
            cut_off = driver.machine.index < left and replica.term < max(self._leaders)     # it leads no longer
            if not learns and not cut_off:
                raise Violation(f"{name} serves and is no member since entry {left}")
        if not replica.is_leader:
            return False
        term = replica.term
        new = term not in self._leaders
        if new:
            self._trace.note(Kind.LEADS, f"{name} leads term {term}", node_number(name), term)
            self._trace.seen["leaderships"] += 1
            committed = self._committed_before(term)
            if driver.journal.last_index < committed:
                raise Violation(f"{name} leads term {term} without entry {committed}, which is committed")
            self._elected[term] = before
            if name not in self.configurations.at(before) and name not in self.configurations.left:
                raise Violation(f"{name} leads term {term} and is no voter")
        if self._leaders.setdefault(term, name) != name:
            raise Violation(f"{self._leaders[term]} and {name} both lead term {term}")
        return new

    def _committed_before(self, term: int) -> int:
        """The last entry committed in an earlier term: late votes can make a leader when there is a newer one."""
        index = self.model.index
        while self.terms.get(index, 0) >= term:
            index -= 1
        return index

    def counted_by(self, leader: str, term: int, before: int) -> tuple[str, ...]:
        """Return who makes the majorities of this leader now; `before` as above."""
        return self.configurations.counted_by(leader, self._elected.get(term, before), before)

    def appended(self, name: str, command: bytes, index: int, term: int, before: int | None) -> None:
        """Log matching: entries of one index and term are equal, and so are those before them."""
        known, known_before = self._entries.setdefault((index, term), (command, before))
        if known != command:
            raise Violation(f"{name} has another entry {index} of term {term}")
        if None not in (before, known_before) and before != known_before:
            raise Violation(f"{name} has another entry before entry {index} of term {term}")

    def launched(self, data: bytes, proposed: list[Outcome]) -> list[tuple[Operation, Outcome | None]]:
        """Note an entry that a leader gives to Raft; `proposed` are the operations that it was given, in order.

        Returns the operations of the entry, each with the receiver of its outcome if a client sent it.
        """
        entry: Entry = decode_entry(data)
        if entry.seed in self._launched:
            raise Violation(f"entry with seed {entry.seed} was proposed twice")
        self._launched.add(entry.seed)
        carried: list[tuple[Operation, Outcome | None]] = []
        for place, operation in enumerate(entry.operations):
            if _is_leaders_own(operation):
                carried.append((operation, None))
                continue
            while proposed[0].state == "refused":
                proposed.pop(0)
            outcome = proposed.pop(0)
            if outcome.operation != operation and not (
                isinstance(operation, Fragment) and operation.last and _ends(operation, outcome.operation)
            ):
                raise Violation(f"{operation} overtook {outcome.operation}")
            outcome.entry, outcome.place = entry.seed, place
            self._outcomes[outcome] = None
            carried.append((operation, outcome))
        return carried

    def applied(
        self, name: str, index: int, now_ms: int, seed: int, operations: list[Operation], replies: list[Reply],
    ) -> bool:
        """State machine safety: every node applies the same at the same index, with the same result.

        Returns whether this node is the first that does.
        """
        self._trace.entry(name, index, now_ms, seed, operations, replies)
        past = self.history.get(index)
        first = past is None
        if past is None:
            if self.groups is not None and index > self.model.index:
                self.groups.applied(now_ms, operations, replies)
            past = self._first(name, index, now_ms, seed, operations)
        elif (past.now_ms, past.seed, past.operations) != (now_ms, seed, operations):
            raise Violation(f"{name} applies another entry {index} than others did")
        if past.replies != replies:
            raise Violation(f"{name} answers {replies} at entry {index}, right is {past.replies}")
        return first

    def _first(self, name: str, index: int, now_ms: int, seed: int, operations: list[Operation]) -> Past:
        if index < self.model.index:
            raise Violation(f"{name} applies entry {index}, which nobody did when {self.model.index} was applied")
        if seed in self._index_of:
            raise Violation(f"{name} applies at {index} what was applied at {self._index_of[seed]}")
        self._index_of[seed] = index
        self._occurrences.comes()
        applied = self.model.apply(index, now_ms, seed, operations)
        replies = applied.replies
        past = Past(now_ms, seed, operations, replies, applied.events, self.model.event_seq)
        self.history[index] = past
        self._trace.seen["entries committed"] += 1
        self._occurrences.applied(operations, replies, applied.events)
        return past

    def told(self, name: str, index: int, recorded: frozenset[str], events: list[Event], event_seq: int) -> None:
        """Check that a node that has applied an entry reports the model's events, of the types that it records."""
        past = self.history[index]
        right = [event for event in past.events if event.type in recorded or event.type == GAP]
        if recorded and lines_of(events) != lines_of(right):
            raise Violation(f"{name} tells {events} at entry {index}, right is {right}")
        if event_seq != past.event_seq:
            raise Violation(f"{name} has counted {event_seq} events at entry {index}, right is {past.event_seq}")

    def cloned(self, data: bytes) -> None:
        """Note that a client took this snapshot at the head of history, and will restore it."""
        self.model.known_bytes[data] = Remembered(self.model)

    def state(self, name: str, index: int, chunks: Iterable[bytes]) -> None:
        """States at equal index are equal."""
        digest = blake2b(b"".join(chunks), digest_size=16).digest()
        self._trace.state(name, index, digest)
        if self._states.setdefault(index, digest) != digest:
            raise Violation(f"{name} has another state after entry {index} than others had")

    # At the end

    def acknowledged(self) -> int:
        """Return how many operations of clients were answered; each of several at once counts."""
        return sum(_answers(outcome.reply) for outcome in self._outcomes if outcome.state == "applied")

    def finish(self, outcomes: list[Outcome]) -> None:
        """Check that every answer is the one in the history, and what was refused is not there."""
        for outcome in outcomes:
            index = None if outcome.entry is None else self._index_of.get(outcome.entry)
            if outcome.state == "applied":
                if index is None:
                    raise Violation(f"{outcome.operation} was acknowledged and is not in the log")
                right = self.history[index].replies[outcome.place]
                if outcome.reply != right:
                    raise Violation(f"{outcome.operation} was answered {outcome.reply}, right is {right}")
            elif outcome.state == "refused" and index is not None and not isinstance(
                self.history[index].replies[outcome.place], FragmentsMissing,
            ):
                raise Violation(f"{outcome.operation} was refused and executed at {index}")


def _answers(reply: Reply | None) -> int:
    return len(reply.replies) if isinstance(reply, Results) else len(reply.jobs) if isinstance(reply, HandedMany) else 1


def _ends(last: Fragment, operation: Operation) -> bool:
    """Return whether these are the last bytes of the operation."""
    levels = range(FIRST_LEVEL, FEATURE_LEVEL + 1)      # its bytes are those of the level that the cluster has
    return any(encode_operation(operation, level)[last.offset:] == last.data for level in levels)
