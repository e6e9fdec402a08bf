"""ReplicatedTime alone: whatever wall clocks show, it continues, near the machine's own clock."""

from __future__ import annotations

import time
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.cluster.leader.clock import DECAY, ReplicatedTime, SystemClock, median

T = 1_700_000_000_000
HOUR_MS = 3_600_000
SLEW = 0.0005                   # what is promised
ROUNDED_MS = 1.01               # what rounding to milliseconds may make of a difference

CLOCKS = st.lists(st.sampled_from((0, HOUR_MS, -HOUR_MS)) | st.integers(-100_000, 100_000), min_size=1, max_size=5)
SECONDS = st.sampled_from((0.001, 0.25, 0.9, 60.0, 1800.0))


class HandClock:
    """A clock that the test sets; only the steady one may be read."""

    def __init__(self) -> None:
        self.seconds = 5.0

    def monotonic(self) -> float:
        raise AssertionError("NTP may let it run faster")

    def steady(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        raise AssertionError("what one clock shows is nothing to go by")


def begun(*clocks_ms: int, known_ms: Sequence[int] = ()) -> tuple[HandClock, ReplicatedTime]:
    clock = HandClock()
    replicated = ReplicatedTime(clock)
    replicated.begin(known_ms, [T + ms for ms in clocks_ms])
    return clock, replicated


@pytest.mark.parametrize(("clocks_ms", "middle"), [
    ([5], (5, 5)), ([7, 1], (1, 7)), ([9, 1, 5], (5, 5)), ([4, 3, 2, 1], (2, 3)), ([1, 9, 9, 1, 2], (2, 2)),
])
def test_median(clocks_ms: list[int], middle: tuple[int, int]) -> None:
    assert median(clocks_ms) == middle


def test_a_leader_begins_at_the_greater_of_what_is_known_and_of_the_median() -> None:
    assert begun(0, 50, -HOUR_MS)[1].now_ms() == T
    assert begun(0, HOUR_MS)[1].now_ms() == T
    assert begun(0, 50, HOUR_MS, known_ms=[T + 40, T + 70])[1].now_ms() == T + 70


def test_what_is_known_is_as_old_as_it_is() -> None:
    clock = HandClock()
    replicated = ReplicatedTime(clock)
    assert not replicated.known
    replicated.follow(T)
    clock.seconds += 1000
    replicated.begin([], [T - HOUR_MS])
    assert replicated.known
    assert replicated.now_ms() == pytest.approx(T + 1_000_000 * (1 - DECAY), abs=ROUNDED_MS)


def test_it_never_falls_behind_what_was_reached_before() -> None:
    clock, replicated = begun(0)
    replicated.reach(T + 2_000_000)
    replicated.reach(1_000)
    clock.seconds += 1.0
    assert replicated.now_ms() == T + 2_001_000


def test_a_message_that_waited_does_not_set_a_follower_back() -> None:
    clock = HandClock()
    replicated = ReplicatedTime(clock)
    replicated.follow(T)
    clock.seconds += 10
    replicated.follow(T + 7_000)
    assert replicated.now_ms() >= T + 9_900


def test_a_follower_does_not_stay_ahead_of_a_leader_that_slews() -> None:
    clock, leader = begun(-HOUR_MS, known_ms=[T])
    follower = ReplicatedTime(clock)
    follower.follow(T + 500)
    for _ in range(2000):
        leader.steer([leader.now_ms() - HOUR_MS])
        clock.seconds += 1
        follower.follow(leader.now_ms())
    assert follower.now_ms() == leader.now_ms()


def test_one_of_two_clocks_draws_it_away_from_the_other_neither_forward_nor_back() -> None:
    for wrong_ms in (HOUR_MS, -HOUR_MS):
        clock, replicated = begun(0)
        for second in range(100):
            replicated.steer([T + 1000 * second, T + 1000 * second + wrong_ms])
            clock.seconds += 1
        assert replicated.now_ms() == pytest.approx(T + 100_000, abs=ROUNDED_MS)


@given(CLOCKS, st.lists(st.tuples(SECONDS, CLOCKS | st.just([])), max_size=30))
def test_it_goes_on_as_the_machine_counts_whatever_the_clocks_show(
    first: list[int], then: list[tuple[float, list[int]]],
) -> None:
    clock, replicated = begun(*first)
    begin_ms, shown = replicated.now_ms(), [replicated.now_ms()]
    for seconds, clocks_ms in then:
        replicated.steer([T + ms for ms in clocks_ms])
        assert replicated.now_ms() == shown[-1]
        clock.seconds += seconds
        shown.append(replicated.now_ms())
        passed_ms = 1000 * seconds
        assert abs(shown[-1] - shown[-2] - passed_ms) <= SLEW * passed_ms + ROUNDED_MS
    assert shown == sorted(shown)
    passed_ms = 1000 * (clock.seconds - 5)
    assert abs(shown[-1] - begin_ms - passed_ms) <= SLEW * passed_ms + ROUNDED_MS


@given(st.lists(st.one_of(
    st.tuples(st.just("follow"), SECONDS, st.integers(-HOUR_MS, HOUR_MS)),
    st.tuples(st.just("steer"), SECONDS, CLOCKS),
    st.tuples(st.just("begin"), SECONDS, CLOCKS),
    st.tuples(st.just("reach"), SECONDS, st.integers(-HOUR_MS, HOUR_MS)),
), max_size=30))
def test_it_never_goes_back(events: list[tuple[str, float, int | list[int]]]) -> None:
    clock, replicated = begun(0)
    shown = [replicated.now_ms()]
    for what, seconds, value in events:
        if isinstance(value, list):
            clocks_ms = [T + ms for ms in value]
            replicated.begin([], clocks_ms) if what == "begin" else replicated.steer(clocks_ms)
        else:
            replicated.follow(T + value) if what == "follow" else replicated.reach(T + value)
        shown.append(replicated.now_ms())
        clock.seconds += seconds
        shown.append(replicated.now_ms())
    assert shown == sorted(shown)


@given(st.integers(-60_000, 60_000), st.lists(st.integers(-2000, 2000), min_size=3, max_size=3), st.integers(0, 2))
def test_it_comes_to_the_median_and_stays_there(behind_ms: int, clocks_ms: list[int], wrong: int) -> None:
    clock, replicated = begun(0)
    clocks_ms[wrong] = HOUR_MS
    needed_s, passed_s = (abs(behind_ms) + 2000) / 1000 / SLEW + 400, 0.0
    while passed_s < needed_s:
        replicated.steer([T + behind_ms + round(1000 * passed_s) + ms for ms in clocks_ms])
        clock.seconds += (step_s := needed_s / 5000 if needed_s / 5000 < 10 else 10.0)
        passed_s += step_s
    there_ms = T + behind_ms + 1000 * passed_s + median(clocks_ms)[0]
    assert replicated.now_ms() == pytest.approx(there_ms, abs=5)
    assert replicated.ahead_ms([round(there_ms)]) == pytest.approx(0, abs=5)


def test_the_system_clock_gives_them_all() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.steady() <= clock.steady()
    assert clock.wall_ms() > 1_700_000_000_000


def test_the_steady_clock_goes_on_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = {time.CLOCK_BOOTTIME: 100.0, time.CLOCK_MONOTONIC_RAW: 90.0}
    monotonic = 100.0
    monkeypatch.setattr(time, "clock_gettime", lambda clock: shown[clock])
    monkeypatch.setattr(time, "monotonic", lambda: monotonic)
    clock = SystemClock()
    assert clock.steady() == 90.0
    shown[time.CLOCK_BOOTTIME] += 3601.0            # suspended for an hour, and awake for a second,
    shown[time.CLOCK_MONOTONIC_RAW] += 1.0
    monotonic += 1.0
    assert clock.steady() == 90.0 + 3601.0
    shown[time.CLOCK_BOOTTIME] += 1.08              # in which chrony slews
    shown[time.CLOCK_MONOTONIC_RAW] += 1.0
    monotonic += 1.08
    assert clock.steady() == pytest.approx(90.0 + 3602.0)
    monotonic += 5.0                                # this process was stopped between the two readings
    assert clock.steady() == pytest.approx(90.0 + 3602.0)
