"""The number of children: bounds, bursts, the keepalive, memory."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sockpq import BadArguments
from sockpq.worker.pool.autoscale import Autoscaler


def test_with_20_reserved_it_is_10_and_with_none_3_after_the_keepalive() -> None:
    scaler = Autoscaler(10, 3, now=100.0)
    assert scaler.target(reserved=0, size=0, now=100) == 3
    assert scaler.target(reserved=20, size=3, now=110) == 10
    assert scaler.target(reserved=0, size=10, now=140) == 10        # exactly the keepalive: no earlier
    assert scaler.target(reserved=0, size=10, now=140.1) == 3


def test_the_keepalive_counts_from_the_start_of_the_pool() -> None:
    scaler = Autoscaler(10, 3, now=100.0, keepalive=5)
    assert scaler.target(reserved=0, size=6, now=104) == 6
    assert scaler.target(reserved=0, size=6, now=105.5) == 3


def test_it_shrinks_to_what_is_reserved() -> None:
    scaler = Autoscaler(10, 3, now=0, keepalive=1)
    assert scaler.target(reserved=5, size=9, now=10) == 5


def test_growing_begins_the_keepalive_anew() -> None:
    scaler = Autoscaler(10, 1, now=0)
    assert scaler.target(4, 1, now=25) == 4
    assert scaler.target(0, 4, now=54) == 4
    assert scaler.target(0, 4, now=55.1) == 1


def test_bounds_change_at_run_time() -> None:
    scaler = Autoscaler(10, 3, now=0)
    scaler.set_bounds(5, 2)
    assert scaler.target(reserved=20, size=10, now=1) == 5          # at once
    scaler.set_bounds(least=8)
    assert (scaler.most, scaler.least) == (8, 8)
    assert scaler.target(reserved=0, size=5, now=1) == 8
    scaler.set_bounds(most=2)
    assert (scaler.most, scaler.least) == (2, 2)
    for wrong in ((3, 4), (0, 0), (5, -1)):
        with pytest.raises(BadArguments):
            scaler.set_bounds(*wrong)


def test_no_growth_beyond_the_share_of_memory_but_to_the_least() -> None:
    scaler = Autoscaler(10, 3, now=0)
    assert scaler.target(reserved=20, size=4, now=1, may_grow=False) == 4
    assert scaler.target(reserved=20, size=1, now=1, may_grow=False) == 3
    assert scaler.target(reserved=20, size=4, now=1) == 10


@given(st.lists(st.tuples(st.integers(0, 40), st.floats(0, 20), st.booleans()), max_size=50))
def test_it_is_never_outside_its_bounds(steps: list[tuple[int, float, bool]]) -> None:
    scaler = Autoscaler(10, 3, now=0)
    size, now = scaler.target(0, 0, 0), 0.0
    for reserved, seconds, may_grow in steps:
        now += seconds
        size = scaler.target(reserved, size, now, may_grow)
        assert 3 <= size <= 10
