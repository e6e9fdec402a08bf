"""Which types of events this node records: those that are subscribed on any node, and for a while after.

So a client that loses its node can go on at another one. The nodes tell each other in Info what is subscribed on them.
What is recorded is no part of the state: see Machine.record.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sockpqd.cluster import limits
from sockpqd.core import Machine


class Recording:
    """The types subscribed here and elsewhere, and until when each is recorded."""

    def __init__(self, machine: Machine, changed: Callable[[frozenset[str]], None]) -> None:
        """`changed` gets the types that are recorded from now on; it is called outside of apply."""
        self.own: frozenset[str] = frozenset()      # types subscribed on this node
        self._machine = machine
        self._changed = changed
        self._until: dict[str, float] = {}
        self._recorded: frozenset[str] = frozenset()

    @property
    def active(self) -> bool:
        """Whether anything is recorded: somebody listens, here or elsewhere."""
        return bool(self._recorded)

    def subscribed(self, types: Iterable[str], now: float) -> None:
        """These are the types subscribed on this node from now on. `now`: monotonic seconds."""
        self._extend(self.own, now)
        self.own = frozenset(types)
        self.update(now)

    def heard(self, types: Iterable[str], now: float) -> None:
        """Another node has told what is subscribed on it."""
        if types:
            self._extend(types, now)
            self.update(now)

    def update(self, now: float) -> None:
        """Begin and end to record what is due."""
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
