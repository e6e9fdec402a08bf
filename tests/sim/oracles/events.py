"""Checks the promise of events: on all nodes they are one sequence, without a gap, through crashes and elections.

Each node has the gateway's own subscriptions, and a subscriber to everything on it; another one roams: when its node
dies it resumes at a different one. As they get all types, numbers must be consecutive. A subscriber that reconnects
resumes at its position, or is refused as too old; a node that got a snapshot reports what its subscribers missed.
"""

from __future__ import annotations

from collections import Counter

from sockpqd.cluster.driver import Driver
from sockpqd.core import EVENT_TYPES, Machine
from sockpqd.gateway.events.filters import Filter
from sockpqd.gateway.events.subscriptions import Subscription, Subscriptions
from tests.sim.world.trace import Violation

EVERYTHING = Filter(EVENT_TYPES)


class Tale:
    """All events of the run, by number."""

    def __init__(self, seen: Counter[str]) -> None:
        self.lines: dict[int, bytes] = {}
        self.seen = seen


class Hearer:
    """A subscriber to everything, which outlives the nodes it connects to."""

    def __init__(self, name: str, tale: Tale) -> None:
        self.name = name
        self.position: int | None = None        # the last number it received
        self._tale = tale
        self._at: tuple[Subscriptions, Subscription] | None = None

    @property
    def deaf(self) -> bool:
        """True if it is connected to no node."""
        return self._at is None

    def listen(self, node: Subscriptions, newest: int) -> None:
        """Subscribe from its position, or from now on if that is too old."""
        after = self.position
        if after is not None and not node.may_begin(EVERYTHING, after):
            self._tale.seen["events too old"] += 1
            after = None
        elif after is not None:
            self._tale.seen["events continued"] += 1
        if after is None:
            self.position = newest
        subscription = node.add(self, EVERYTHING, after)
        node.begin(subscription)
        self._at = node, subscription

    def leave(self) -> None:
        """Handle the end of its node."""
        self._at = None

    # --- Subscriber

    def tell(self, lines: list[bytes]) -> None:
        """Check that each event is the next one, and equals what every other subscriber received."""
        for line in lines:
            seq, kind, *words = line.split()[1:]
            number = int(seq)
            first = int(words[0]) if kind == b"GAP" else number
            if self.position is None or first != self.position + 1:
                raise Violation(f"{self.name} hears {line!r} after event {self.position}")
            self.position = number
            if kind != b"GAP":
                self._tale.seen["events heard"] += 1
                if self._tale.lines.setdefault(number, line) != line:
                    raise Violation(f"{self.name} hears {line!r}, another heard {self._tale.lines[number]!r}")

    def unsent_bytes(self) -> int:
        """Return 0: it reads at once."""
        return 0

    def may_hear(self, event_type: str, name: str) -> bool:
        """Return True: it may receive everything."""
        return True

    def may_stay(self) -> bool:
        """Return True: no user is deleted."""
        return True

    def cut(self, why: str) -> None:
        """Fail: it reads everything, so it must not be cut off."""
        raise Violation(f"{self.name} is cut: {why}")


class EventNode:
    """The part of a simulated node that the gateway's subscriptions need."""

    def __init__(self, machine: Machine, driver: Driver) -> None:
        self.machine = machine
        self._driver = driver

    @property
    def serving(self) -> bool:
        """Implement Cluster."""
        return self._driver.leadership.serving

    def subscribed(self, types: frozenset[str]) -> None:
        """Implement Cluster."""
        self._driver.subscribed(types)
