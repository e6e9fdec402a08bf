"""Checks that all nodes of a simulated cluster with gateways agree on the replicated state.

The reference model of the queue knows no pulses, so replies are not judged here: a machine of the simulation's own
executes each entry first, and every node must do and answer the same. Answers to clients are judged elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from sockpqd.core import Entry, Event, Machine, Operation, decode_entry
from tests.sim.clients.outcomes import Outcome
from tests.sim.oracles.checks import Checks, Past
from tests.sim.world.trace import Trace, Violation


class Witness:
    """Executes the history; what the simulation asks of a model, and the machine."""

    def __init__(self) -> None:
        self.machine = Machine()

    @property
    def index(self) -> int:
        """The index of the last entry."""
        return self.machine.index

    @property
    def clock_ms(self) -> int:
        """Replicated time in milliseconds."""
        return self.machine.clock_ms

    @property
    def voters(self) -> tuple[str, ...]:
        """Return the voters among the founders."""
        return self.machine.membership.voters

    @property
    def configuration(self) -> int:
        """The number of the set of voters."""
        return self.machine.membership.configuration

    @property
    def learner(self) -> str | None:
        """The node that joins, if any."""
        return self.machine.membership.learner

    @property
    def online(self) -> bool:
        """True if the service is switched online."""
        return self.machine.online


class WitnessedChecks(Checks):
    """`told` gets each entry that is applied for the first time, and its events of these `types`."""

    def __init__(
        self, trace: Trace, founders: tuple[str, ...], types: Iterable[str],
        told: Callable[[Machine, list[Event]], None],
    ) -> None:
        super().__init__(trace, founders)
        self.witness = Witness()
        self.witness.machine.record(types)
        self.model: Any = self.witness
        self._told = told

    def launched(self, data: bytes, proposed: list[Outcome]) -> list[tuple[Operation, Outcome | None]]:
        """Note that a leader gives an entry to Raft: once."""
        entry: Entry = decode_entry(data)
        if entry.seed in self._launched:
            raise Violation(f"entry with seed {entry.seed} was proposed twice")
        self._launched.add(entry.seed)
        return []

    def _first(self, name: str, index: int, now_ms: int, seed: int, operations: list[Operation]) -> Past:
        if index <= self.witness.index:
            raise Violation(f"{name} applies entry {index}, which nobody did when {self.witness.index} was applied")
        if seed in self._index_of:
            raise Violation(f"{name} applies at {index} what was applied at {self._index_of[seed]}")
        self._index_of[seed] = index
        machine = self.witness.machine
        applied = machine.apply(index, now_ms, seed, operations)
        past = Past(now_ms, seed, operations, applied.replies, applied.events, machine.event_seq)
        self.history[index] = past
        self._trace.seen["entries committed"] += 1
        self._told(machine, applied.events)
        return past
