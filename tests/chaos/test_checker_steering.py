"""The checker's rules about heartbeats of pools of workers, and their operator's settings."""

from __future__ import annotations

from typing import Any, Self

import pytest

from tests.chaos.histories.handwritten import REFUSED, UNKNOWN, Written
from tests.chaos.workload.history import Beat, Steer


class Pools(Written):
    """Heartbeats of one pool, and its operator's settings."""

    def beat(self, told: int | None, start: float, end: float, pool: str = "p", **rest: Any) -> Self:
        """Record WORKER, and the MAX of its answer."""
        return self._add(Beat(pool), start, end, told=told, **rest)

    def steer(self, most: int, start: float, end: float | None, **rest: Any) -> Self:
        """Record WORKER SET .. MAX."""
        return self._add(Steer("p", most), start, end, **rest)


@pytest.mark.parametrize(("told", "broken"), [(2, []), (1, ["worker"]), (None, ["worker"]), (3, ["worker"])])
def test_a_heartbeat_is_told_the_last_word(told: int | None, broken: list[str]) -> None:
    written = Pools().steer(1, 1, 1.1).steer(2, 2, 2.1).beat(told, 3, 3.1).steer(3, 4, 4.1)
    assert written.broken() == broken
    assert written.beat(None, 3, 3.1, pool="other").broken() == broken


@pytest.mark.parametrize("told", [1, 2])
def test_at_the_same_time_it_may_be_told_either(told: int) -> None:
    assert Pools().steer(1, 1, 1.1).steer(2, 2, 2.1).beat(told, 2.05, 3).broken() == []


def test_what_is_replaced_does_not_come_back() -> None:
    written = Pools().steer(1, 1, 1.1).steer(2, 2, 2.5).beat(2, 2.1, 2.2)
    assert written.beat(1, 2.3, 2.4).broken() == ["worker"]


def test_a_word_of_unknown_outcome_may_come_late_but_once() -> None:
    def written() -> Pools:
        return Pools().steer(1, 1, 1.1).steer(2, 2, 2.1, outcome=UNKNOWN).steer(3, 3, 3.1)

    assert written().beat(2, 9, 9.1).broken() == []
    assert written().beat(3, 9, 9.1).broken() == []
    assert written().beat(1, 9, 9.1).broken() == ["worker"]
    assert written().beat(2, 2.5, 2.6).beat(2, 9, 9.1).broken() == ["worker"]


def test_a_refused_word_is_not_told() -> None:
    assert Pools().steer(1, 1, 1.1, outcome=REFUSED).beat(1, 2, 2.1).broken() == ["worker"]
    assert Pools().steer(1, 1, 1.1, outcome=REFUSED).beat(None, 2, 2.1).broken() == []


@pytest.mark.parametrize(("said", "broken"), [(2, ["worker"]), (1.05, []), (0.5, [])])
def test_a_pool_that_was_there_is_found(said: float, broken: list[str]) -> None:
    assert Pools().beat(None, 1, 1.1).steer(1, said, said + 0.1, missing=True).broken() == broken
