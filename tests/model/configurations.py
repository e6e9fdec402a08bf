"""The configurations in which all states are looked at: short ones for `make test`, long ones for `make model`."""

from __future__ import annotations

from dataclasses import dataclass

from tests.model.invariants import WHOLE_DISKS, Invariant
from tests.model.rules import Rules
from tests.model.state import State, start


class Synced(Rules):
    """Syncs are steps of their own, so a crash may leave the state before or after."""

    syncs = True


@dataclass(frozen=True)
class Configuration:
    """Rules and a cluster, in which all states are looked at. `states`: how many there are, 0 if never counted."""

    name: str
    rules: Rules
    first: State
    states: int
    invariants: tuple[Invariant, ...] = WHOLE_DISKS


SHORT = (
    Configuration("three nodes, two terms, an entry", Rules(), start(3, 2, entries=1, crashes=0), 4905),
    Configuration("crashes", Rules(), start(3, 2, entries=0, crashes=1), 2679),
    Configuration("three terms", Rules(), start(3, 3, entries=0, crashes=0), 7764),
    Configuration("syncs", Synced(), start(3, 2, entries=0, crashes=0), 6328),
)
LONG = (
    Configuration("three nodes, two terms, two entries", Rules(), start(3, 2, entries=2, crashes=1), 0),
    Configuration("three terms and an entry", Rules(), start(3, 3, entries=1, crashes=0), 0),
    Configuration("three terms and a crash", Rules(), start(3, 3, entries=0, crashes=1), 0),
    Configuration("four terms", Rules(), start(3, 4, entries=0, crashes=0), 0),
    Configuration("syncs and a crash", Synced(), start(3, 2, entries=0, crashes=2), 0),
    Configuration("syncs and an entry", Synced(), start(3, 2, entries=1, crashes=1), 0),
    Configuration("five nodes", Rules(), start(5, 2, entries=0, crashes=0), 0),
)
