"""The monitor of the promise about pulses: by which of a pulse's speeds it judges a grant, first or repeated."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any

import pytest

from sockpqd.core import Grant, Granted, Pulse, Reply, Request, TakeTurn, Turn
from tests.sim.gateway.answers import Answer, Asked, Form
from tests.sim.gateway.grants import GrantMonitor
from tests.sim.world.events import Events
from tests.sim.world.trace import Violation

WITH_A_GRANT, WITHOUT = (Request(1, 1, bytes(16), 0, True, TakeTurn("p", free)) for free in (True, False))
FIRST, SECOND = Turn(1), Granted(2, 1)
PER_S, STEP_S = 1.0, 0.5


class History:
    """One pulse with `now` grants in `PER_S` seconds, and one node that writes its grants."""

    def __init__(self, fast: float = 1.0, now: int = 1, *, together: bool = False, spread: bool = False) -> None:
        self._events = Events()
        self.monitor = GrantMonitor(self._events, Counter(), fast)
        self._pulse = Pulse(
            "p", rate=1, now=now, per_ms=int(PER_S * 1000), step_ms=int(STEP_S * 1000), together=together,
            spread=spread)
        self._node: Any = SimpleNamespace(name="n1", has_grants=False, waited_s=0.0)
        self._changed()
        self.pass_s(PER_S)

    def _changed(self) -> None:
        self.monitor.history(SimpleNamespace(pulses={"p": self._pulse}, rate_limited_queues={}))      # type: ignore[arg-type]

    def slow_down(self) -> None:
        self._pulse.pause_ms += self._pulse.step_ms
        self._changed()

    def pass_s(self, seconds: float) -> None:
        self._events.now += seconds

    def wait_for_the_disk(self, seconds: float) -> None:
        self.pass_s(seconds)
        self._node.waited_s += seconds

    def propose(self, operation: Grant | Request) -> Any:
        ignored: Any = SimpleNamespace(applied=lambda reply: None)
        return self.monitor.decided(self._node, operation, ignored)

    def write(self, ticket: int) -> None:
        self.monitor.wrote(self._node, Answer(Asked(Form.TURN, "p"), b"", ticket), "p")

    def give(self, operation: Grant | Request, reply: Reply, ticket: int) -> None:
        """Give a group's grants at one moment."""
        self.propose(operation).applied(reply)
        self.write(ticket)

    def two(self) -> None:
        """Return a ticket that leaves the window, and another one that leaves it just now, unless the pulse slows down.
        """
        self.give(WITH_A_GRANT, FIRST, 1)
        self.pass_s(2 * PER_S)
        self.give(Grant("p", 1), SECOND, 2)
        self.pass_s(PER_S + 0.001)


@pytest.fixture
def history() -> History:
    return History()


def test_a_grant_may_have_been_right_when_it_was_proposed(history: History) -> None:
    history.two()
    proposed = history.propose(Grant("p", 1))
    history.slow_down()
    proposed.applied(Granted(3, 1))
    history.write(3)


def test_so_may_one_that_is_told_again_with_a_grant(history: History) -> None:
    history.two()
    proposed = history.propose(WITH_A_GRANT)
    history.slow_down()
    proposed.applied(FIRST)
    history.write(1)


def test_told_again_without_a_grant_it_must_be_right_when_that_is_decided(history: History) -> None:
    history.two()
    proposed = history.propose(WITHOUT)
    history.slow_down()
    proposed.applied(FIRST)
    with pytest.raises(Violation, match=r"ticket 1 again: 2 of p in 1\.5 s"):
        history.write(1)


def test_what_it_was_proposed_with_at_first_is_no_excuse(history: History) -> None:
    history.two()
    history.slow_down()
    with pytest.raises(Violation, match=r"ticket 1 again: 2 of p in 1\.5 s"):
        history.give(WITH_A_GRANT, FIRST, 1)


def test_what_is_in_the_window_needs_no_room(history: History) -> None:
    history.give(WITH_A_GRANT, FIRST, 1)
    history.pass_s(PER_S / 2)
    history.give(WITHOUT, FIRST, 1)
    history.pass_s(PER_S / 2 + 0.001)
    with pytest.raises(Violation, match=r"ticket 2: 2 of p in 1 s"):
        history.give(Grant("p", 1), SECOND, 2)


@pytest.mark.parametrize(("apart_s", "right"), [(1.0, True), (1.01, True), (1.03, False)])
def test_on_a_slow_clock_it_is_longer_in_the_window(apart_s: float, right: bool) -> None:
    history = History(fast=1.02)
    history.give(WITH_A_GRANT, FIRST, 1)
    history.pass_s(PER_S)
    history.give(Grant("p", 1), SECOND, 2)
    history.slow_down()
    history.pass_s((PER_S + STEP_S) * apart_s - PER_S)
    with nullcontext() if right else pytest.raises(Violation, match=r"ticket 1 again: 2 of p in 1\.5 s"):
        history.give(WITHOUT, FIRST, 1)


def test_a_grant_of_a_group_may_be_told_later_if_it_is_asked_for_again() -> None:
    """The connection of its client was lost before it could be sent."""
    history = History(now=2, together=True)
    history.give(Grant("p", 2), Granted(1, 2), 1)
    history.pass_s(PER_S / 2)
    history.give(WITHOUT, Turn(2), 2)


def test_otherwise_it_must_be_told_with_the_group() -> None:
    history = History(now=2, together=True)
    history.give(Grant("p", 2), Granted(1, 2), 1)
    history.pass_s(PER_S / 2)
    with pytest.raises(Violation, match=r"two grants of a group of p come 0\.5000 s after each other"):
        history.write(2)


def test_a_disk_may_hold_up_a_part_of_a_group() -> None:
    history = History(now=2, together=True)
    history.give(Grant("p", 2), Granted(1, 2), 1)
    history.wait_for_the_disk(PER_S / 2)
    history.write(2)


@pytest.mark.parametrize(("apart_s", "right"), [(0.499, False), (0.5, True)])
def test_grants_that_are_spread_keep_their_gap(apart_s: float, right: bool) -> None:
    history = History(now=2, spread=True)
    history.give(Grant("p", 1), FIRST, 1)
    history.pass_s(apart_s)
    with nullcontext() if right else pytest.raises(Violation, match=r"after the grant before, and .* 0\.5000 s apart"):
        history.give(Grant("p", 1), SECOND, 2)


def test_a_fast_clock_makes_the_gap_shorter() -> None:
    history = History(fast=1.25, now=2, spread=True)
    history.give(Grant("p", 1), FIRST, 1)
    history.pass_s(0.4)
    history.give(Grant("p", 1), SECOND, 2)


def test_what_is_asked_for_again_keeps_no_gap() -> None:
    history = History(now=2, spread=True)
    history.give(Grant("p", 1), FIRST, 1)
    history.pass_s(0.5)
    history.give(Grant("p", 1), SECOND, 2)
    history.give(WITHOUT, FIRST, 1)
