"""The configurations in which all states are looked at: short ones for `make test`, long ones for `make model`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.model.invariants import ALWAYS, WHOLE_DISKS
from tests.model.leases import Follower, LeaseRules, Leases, nobody_else_is_elected
from tests.model.losses import Losses
from tests.model.members import Members
from tests.model.mistakes_of_losses import CAUGHT_UP, FORGOTTEN, OFFERED, VOTED, Copies
from tests.model.mistakes_of_members import SERVES
from tests.model.rules import Label, Rules
from tests.model.search import follow
from tests.model.state import State, start


class Synced(Rules):
    """Syncs are steps of their own, so a crash may leave the state before or after."""

    syncs = True


class HandingOver(Losses):
    """Disks are lost while leaders hand over."""

    hands_over = True


def after(rules: Rules, path: tuple[Label, ...], first: State) -> State:
    """Return the state after these steps, from which the search begins: what came before is looked at elsewhere."""
    state = follow(rules, first, path)
    assert state is not None
    return state


@dataclass(frozen=True)
class Configuration:
    """Rules and a cluster, in which all states are looked at. `states`: how many there are, 0 if never counted."""

    name: str
    rules: Any
    first: Any
    states: int
    invariants: tuple[Callable[[Any, Any], bool], ...] = WHOLE_DISKS


SHORT = (
    Configuration("three nodes, two terms, an entry", Rules(), start(3, 2, entries=1, crashes=0), 4905),
    Configuration("crashes", Rules(), start(3, 2, entries=0, crashes=1), 2679),
    Configuration("syncs", Synced(), start(3, 2, entries=0, crashes=0), 6328),
    Configuration("a lost disk, after a commit", Losses(), after(
        Losses(), CAUGHT_UP, start(3, 2, entries=0, crashes=0, losses=1)), 458, ALWAYS),
    Configuration("an older copy, after a vote and a greeting", Copies(), after(
        Copies(), (*FORGOTTEN, ("greet", 1, 2)), start(3, 2, entries=0, crashes=0, losses=1)), 5104, ALWAYS),
    Configuration("leases", LeaseRules(), Leases((Follower(),) * 2), 59443, (nobody_else_is_elected,)),
)
LONG = (
    Configuration("three terms", Rules(), start(3, 3, entries=0, crashes=0), 7764),
    Configuration("three nodes, two terms, two entries", Rules(), start(3, 2, entries=2, crashes=1), 77527),
    Configuration("three terms and an entry", Rules(), start(3, 3, entries=1, crashes=0), 65384),
    Configuration("three terms and a crash", Rules(), start(3, 3, entries=0, crashes=1), 30550),
    Configuration("four terms", Rules(), start(3, 4, entries=0, crashes=0), 63414),
    Configuration("syncs and a crash", Synced(), start(3, 2, entries=0, crashes=2), 52167),
    Configuration("syncs and an entry", Synced(), start(3, 2, entries=1, crashes=1), 692953),
    Configuration("a change of members", Members(), start(
        3, 2, entries=0, crashes=0, changes=1, voters=7), 22991, ALWAYS),
    Configuration("a node joins, after an entry", Members(), after(
        Members(), SERVES, start(4, 2, entries=0, crashes=0, changes=1, voters=7)), 0, ALWAYS),
    Configuration("two changes and a crash, after an entry", Members(), after(
        Members(), SERVES, start(3, 2, entries=0, crashes=1, changes=2, voters=7)), 0, ALWAYS),
    Configuration("five nodes", Rules(), start(5, 2, entries=0, crashes=0), 75286),
    Configuration("a lost disk", Losses(), start(3, 2, entries=0, crashes=0, losses=1), 30422, ALWAYS),
    Configuration("an older copy", Copies(), start(3, 2, entries=0, crashes=0, losses=1), 306517, ALWAYS),
    Configuration("a lost disk and handing over", HandingOver(), start(
        3, 2, entries=0, crashes=0, losses=1), 136444, ALWAYS),
    Configuration("a lost disk, three terms", Losses(), start(3, 3, entries=0, crashes=0, losses=1), 0, ALWAYS),
    Configuration("five nodes, a lost disk after a vote", Losses(), after(
        Losses(), VOTED[:-1], start(5, 2, entries=0, crashes=0, losses=1)), 15597, ALWAYS),
    Configuration("five nodes, a lost disk after an offer", HandingOver(), after(
        HandingOver(), OFFERED[:-3], start(5, 2, entries=0, crashes=0, losses=1)), 0, ALWAYS),
)
