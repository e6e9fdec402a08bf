"""Checks that a node's disk holds all that the node has vouched for: by its syncs, and by its messages to others.

Its messages are compared with earlier ones, over all its processes, and not with its journal: a journal that has not
written a vote does not know of it either.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from sockpqd.cluster.wire.messages import Ack
from tests.sim.oracles.checks import Checks
from tests.sim.world.events import Events
from tests.sim.world.trace import Violation

if TYPE_CHECKING:
    from tests.sim.world.observed import ObservedJournal


class Promise(NamedTuple):
    """The entries that a journal promises after a sync."""

    term: int
    vote: str | None
    last_index: int
    last_term: int
    voter: bool


class Durability:
    """The promises of one disk. `syncing`: the node is in a sync, or died in one: then its disk holds the old or the
    new.
    """

    def __init__(self, name: str, events: Events, checks: Checks) -> None:
        self.syncing = False
        self.commit = 0             # the commit index on the disk
        self._name = name
        self._events = events
        self._checks = checks
        self._journal: ObservedJournal | None = None
        self._promise: Promise | None = None
        self._syncs = [(0.0, 0)]    # when each sync ends, on a slow disk, and the last durable entry then
        self._intact = 0            # the log has not lost anything up to here since the last sync
        self._held = 0              # a committed entry that was durable here, and all before it
        self._votes: dict[int, str] = {}        # term -> for whom a vote has left this node
        self._led_in = 0                        # the last term of a leader that it has answered
        self._vouched = (0, 0)                  # index and term of the last entry that it has acknowledged

    def found(self, journal: ObservedJournal) -> None:
        """Check a disk that a new process has read: everything promised must be there."""
        self.loses(self._intact + 1)
        self._journal = journal
        self._syncs = [(self._events.now, journal.last_index)]
        self._intact = journal.last_index
        self._remembers(journal)
        old, new = self._promise, _promise(journal)
        if old is None or new == old:
            return
        if not self.syncing or new.term < old.term or new.voter < old.voter:
            raise Violation(f"{self._name} promised {old} and remembers {new}")

    def _remembers(self, journal: ObservedJournal) -> None:
        """Check that this disk holds what it has promised, also if its node died in a sync."""
        index, term = self._vouched
        if index > journal.last_index or journal.term_at(index) not in (None, term):
            raise Violation(f"{self._name} acknowledged entry {index} of term {term} and has forgotten it")
        last = max((self._led_in, *self._votes))
        if last > journal.getCurrentTerm():
            raise Violation(f"{self._name} took part in term {last} and remembers {journal.getCurrentTerm()}")

    def votes(self, term: int, candidate: str) -> None:
        """Note that a vote leaves the node; as a candidate it has one for itself."""
        before = self._votes.setdefault(term, candidate)
        if before != candidate:
            raise Violation(f"{self._name} votes for {candidate} in term {term}, and it voted for {before}")
        if term < self._led_in:
            raise Violation(f"{self._name} votes in term {term}, and it answered a leader of term {self._led_in}")

    def acknowledges(self, ack: Ack, takes_s: float) -> None:
        """Note that an acknowledgement leaves the node `takes_s` from now."""
        self._led_in = max(self._led_in, ack.term)
        index, journal = ack.next_index - 1, self._journal
        if not ack.success or index <= 0 or journal is None:
            return
        if index > min(self._intact, self._durable(self._events.now + takes_s)):
            raise Violation(f"{self._name} acknowledges entry {index}, which is not on its disk")
        if index > self._vouched[0]:
            self._vouched = index, journal.term_at(index) or 0

    def vouch(self, journal: ObservedJournal, *, damaged: bool) -> None:
        """Note that the process begins to act upon what it found."""
        self._promise, self.syncing = _promise(journal), False
        self._compare(journal, damaged=damaged)

    def loses(self, index: int) -> None:
        """Note what is committed and durable, as the log is about to lose this entry and all behind it."""
        if self._journal is not None:
            self._held = max(self._held, self._committed_in(self._journal, self._intact))
            self._intact = min(self._intact, index - 1)
            if index <= self._vouched[0]:
                self._vouched = index - 1, self._journal.term_at(index - 1) or 0
            self._syncs = [(over_at, min(last, index - 1)) for over_at, last in self._syncs]

    def synced(self, journal: ObservedJournal, takes_s: float, *, damaged: bool) -> None:
        """Note that the journal reports everything as durable, which is true `takes_s` from now."""
        self._promise = _promise(journal)
        self._syncs = [(0.0, self._durable()), *self._under_way(), (self._events.now + takes_s, journal.last_index)]
        self._intact = journal.last_index
        self._compare(journal, damaged=damaged)

    def synced_to(self, index: int) -> None:
        """Note that the journal reports entries as durable up to here; more may be durable."""
        self._syncs = [(0.0, self._durable()), *self._under_way(), (self._events.now, index)]
        self._intact = max(self._intact, index)

    def _compare(self, journal: ObservedJournal, *, damaged: bool) -> None:
        """Check that everything noted as durable exists."""
        if self._held:
            held = self._committed_in(journal, journal.last_index)
            if held < self._held and not damaged:
                raise Violation(f"{self._name} has entries up to {held}, it had {self._held}, which is committed")
            self._held = 0

    def hurry(self) -> None:
        """Finish what the disk was working on."""
        self._syncs = [(self._events.now, self._syncs[-1][1])]

    def has(self, index: int, term: int | None) -> bool:
        """Return whether this entry is on the disk now."""
        journal = self._journal
        last = min(self._intact, self._durable())
        return journal is not None and index <= last and (index < journal.first_index or journal.term_at(index) == term)

    def _under_way(self) -> list[tuple[float, int]]:
        return [sync for sync in self._syncs if sync[0] > self._events.now]

    def _durable(self, at: float = 0.0) -> int:
        """Return the last entry of the syncs that have ended, now or then."""
        when = max(at, self._events.now)
        return [last for over_at, last in self._syncs if over_at <= when][-1]

    def term_at(self, index: int) -> int | None:
        """Return the term of an entry in the log."""
        return None if self._journal is None else self._journal.term_at(index)

    def _committed_in(self, journal: ObservedJournal, last: int) -> int:
        """Index of the last entry up to `last` that is known to be committed. It stands for all before it."""
        terms = self._checks.terms
        index = min(last, self._checks.model.index)
        while index > journal.first_index and terms.get(index, -1) != journal.term_at(index):
            index -= 1
        return index


def _promise(journal: ObservedJournal) -> Promise:
    return Promise(
        journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.last_index, journal.last_term, journal.voter,
    )
