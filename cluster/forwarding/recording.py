"""Selects the types of events that this node records: those with a subscription on any node, now or until recently.

So a client that loses its node can continue at another one. The nodes announce their subscribed types in Info. Recorded
events are not part of the state: see Machine.record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sockpqd.cluster import limits
from sockpqd.core import Machine


class Recording:
    """The event types subscribed here and elsewhere, with the time until which each is recorded."""

    def __init__(self, machine: Machine, changed: Callable[[frozenset[str]], None]) -> None:
        """`changed` is called, outside of apply, with the types to record from now on."""
        self.own: frozenset[str] = frozenset()      # types subscribed on this node
        self._machine = machine
        self._changed = changed
        self._until: dict[str, float] = {}
        self._recorded: frozenset[str] = frozenset()

    @property
    def active(self) -> bool:
        """True if any type is recorded, because some node has a subscription."""
        return bool(self._recorded)

    def subscribed(self, types: Iterable[str], now: float) -> None:
        """Set the types subscribed on this node from now on. `now`: monotonic seconds."""
        self._extend(self.own, now)
        self.own = frozenset(types)
        self.update(now)

    def heard(self, types: Iterable[str], now: float) -> None:
        """Record the types subscribed on another node. `now`: monotonic seconds."""
        if types:
            self._extend(types, now)
            self.update(now)

    def update(self, now: float) -> None:
        """Begin or stop recording types that are due."""
        self._extend(self.own, now)
        for event_type in [one for one, until in self._until.items() if until <= now]:
            del self._until[event_type]
        recorded = frozenset(self._until)
        if recorded != self._recorded:
            self._recorded = recorded
            self._machine.record(recorded)
            self._changed(recorded)

    def _extend(self, types: Iterable[str], now: float) -> None:
        for event_type in types:
            self._until[event_type] = now + limits.RECORDED_S
