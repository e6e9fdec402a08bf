"""The choice of the child that gets a job, and the number of jobs that a pool asks for."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sockpq.worker.pool.balancing import ASKED_JOBS_MAX, Balancer, to_ask


def balancer(strategy: str, children: int, inbox_max: int = 4) -> Balancer:
    made = Balancer(strategy, inbox_max)        # type: ignore[arg-type]
    for child in range(children):
        made.add(child)
    return made


def test_fair_gives_to_idle_children_only() -> None:
    fair = balancer("fair", 3, inbox_max=2)
    assert fair.deal(5) == [0, 1, 2, 0, 1]          # shared out among the idle
    assert fair.deal(1) == []                       # child 2 has room, but is busy
    fair.ended(1)
    assert fair.deal(1) == []
    fair.ended(1)
    assert fair.idle() == [1]
    assert fair.deal(3) == [1, 1]


def test_fast_gives_to_busy_ones_too_as_jobs_arrive() -> None:
    fast = balancer("fast", 3, inbox_max=2)
    assert fast.deal(2) + fast.deal(6) == [0, 1, 2, 0, 1, 2]
    fast.ended(2)
    assert fast.deal(2) == [2]


@pytest.mark.parametrize("strategy", ["fair", "fast"])
def test_rotation_spreads_jobs_within_a_tenth(strategy: str) -> None:
    made = balancer(strategy, 7)
    draw = random.Random(5)
    given_to: Counter[int] = Counter()
    busy: list[int] = []
    for _ in range(7000):
        for child in made.deal(6 - len(busy)):
            given_to[child] += 1
            busy.append(child)
        made.ended(busy.pop(draw.randrange(len(busy))))
    mean = given_to.total() / 7
    assert all(0.9 * mean <= count <= 1.1 * mean for count in given_to.values()), given_to


def test_a_child_that_is_removed_gets_nothing() -> None:
    fair = balancer("fair", 2)
    fair.remove(0)
    fair.remove(0)
    fair.ended(0)
    assert fair.deal(9) == [1, 1, 1, 1]


def test_count_is_idle_slots_times_prefetch() -> None:
    assert to_ask(idle=3, slots=4, held=1, waiting=0, prefetch=4) == 12
    assert to_ask(idle=0, slots=4, held=4, waiting=0, prefetch=4) == 0
    assert to_ask(idle=1, slots=4, held=15, waiting=0, prefetch=4) == 1
    assert to_ask(idle=1, slots=4, held=3, waiting=0, prefetch=1) == 1
    assert to_ask(idle=2, slots=2, held=5, waiting=5, prefetch=4) == 3


def test_without_a_limit_all_that_there_are_are_asked_for() -> None:
    assert to_ask(idle=0, slots=4, held=100_000, waiting=99_000, prefetch=0) == ASKED_JOBS_MAX
    assert to_ask(idle=0, slots=0, held=0, waiting=0, prefetch=0) == 0


@pytest.mark.parametrize("strategy", ["fair", "fast"])
def test_room_is_what_can_be_dealt(strategy: str) -> None:
    made = balancer(strategy, 3, inbox_max=3)
    made.deal(1)
    room = made.room
    assert len(made.deal(100)) == room == (6 if strategy == "fair" else 8)


@given(slots=st.integers(0, 50), busy=st.integers(0, 50), waiting=st.integers(0, 200), prefetch=st.integers(1, 20))
def test_no_more_is_held_than_slots_times_prefetch(slots: int, busy: int, waiting: int, prefetch: int) -> None:
    busy = min(busy, slots)
    held = min(busy + waiting, slots * prefetch)
    asked = to_ask(slots - busy, slots, held, waiting, prefetch)
    assert asked >= 0
    assert not asked or held + asked <= slots * prefetch
    assert slots > busy or not asked
