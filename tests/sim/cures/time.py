"""Takes out of the product what keeps replicated time right though a wall clock is wrong."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from sockpqd.cluster.leader import clock
from sockpqd.cluster.leader.clock import ReplicatedTime
from sockpqd.cluster.leader.leadership import Leadership
from tests.sim.cures.cure import Cure, only, scripted
from tests.sim.scenarios import time as time_scenarios
from tests.sim.scenarios.time import SCRIPTED


def follow_the_wall_clock(patch: pytest.MonkeyPatch) -> None:
    """Let leaders stamp entries with their wall clocks."""
    patch.setattr(ReplicatedTime, "now_ms", lambda self: self._clock.wall_ms())


def begin_with_ones_own_clock(patch: pytest.MonkeyPatch) -> None:
    """Let a new leader not ask what the clocks of the others show."""
    patch.setattr(Leadership, "clocks_ms", lambda self: [self._clock.wall_ms()])


def take_the_greater_of_two(patch: pytest.MonkeyPatch) -> None:
    """Take the upper median of an even number of clocks."""
    def upper(clocks_ms: Sequence[int]) -> tuple[int, int]:
        value = sorted(clocks_ms)[len(clocks_ms) // 2]
        return value, value
    patch.setattr(clock, "median", upper)


def step_to_the_median(patch: pytest.MonkeyPatch) -> None:
    """Let a leader step instead of slewing."""
    def steer(self: ReplicatedTime, clocks_ms: Sequence[int]) -> None:
        if clocks_ms:
            self._go_on(max(self._now(), clock.median(clocks_ms)[0]), 1.0)
    patch.setattr(ReplicatedTime, "steer", steer)


def hurry(patch: pytest.MonkeyPatch) -> None:
    """Let a leader slew as chrony does."""
    patch.setattr(clock, "SLEW", 0.08)
    patch.setattr(clock, "SETTLE_S", 0.1)


def forget_what_time_it_was(patch: pytest.MonkeyPatch) -> None:
    """Let a new leader derive the time only from the log and the clocks."""
    real = ReplicatedTime.begin

    def begin(self: ReplicatedTime, known_ms: Iterable[int], clocks_ms: Sequence[int]) -> None:
        self._base_ms = 0.0
        real(self, [next(iter(known_ms))], clocks_ms)
    patch.setattr(ReplicatedTime, "begin", begin)


def tell_nobody_what_time_it_is(patch: pytest.MonkeyPatch) -> None:
    """Let a leader send its followers no time."""
    patch.setattr(Leadership, "heard", lambda self, info: None)


def ask_nobody_what_time_it_was(patch: pytest.MonkeyPatch) -> None:
    """Let a new leader rely on the time that it received itself."""
    real = ReplicatedTime.begin

    def begin(self: ReplicatedTime, known_ms: Iterable[int], clocks_ms: Sequence[int]) -> None:
        real(self, [next(iter(known_ms))], clocks_ms)
    patch.setattr(ReplicatedTime, "begin", begin)


def look_at_no_clock(patch: pytest.MonkeyPatch) -> None:
    """Let a new leader continue at the time at which the log ends; only the very first reads a clock."""
    real = ReplicatedTime.begin

    def begin(self: ReplicatedTime, known_ms: Iterable[int], clocks_ms: Sequence[int]) -> None:
        known_ms = list(known_ms)
        real(self, known_ms, [0] if known_ms[0] else clocks_ms)
    patch.setattr(ReplicatedTime, "begin", begin)


CLOCKS: dict[str, Any] = {
    "drift": 0.0, "wrong_clocks": 1,
    "weights": {**only("crash", "isolated leader", "offline", "pause", "slow link"), "clock jump": 3.0},
}
THREE: dict[str, Any] = {**CLOCKS, "nodes": 3, "spares": 0}
ONE: dict[str, Any] = {"drift": 0.0, "nodes": 1, "spares": 0, "weights": only("clock jump", "snapshot")}

CURES = (
    Cure(follow_the_wall_clock, THREE, red=1),
    Cure(begin_with_ones_own_clock, THREE, red=15),
    Cure(take_the_greater_of_two, THREE, red=20),
    Cure(step_to_the_median, ONE, red=0),
    Cure(hurry, ONE, red=2),
    Cure(forget_what_time_it_was, scripted(SCRIPTED, time_scenarios.time_passes_without_entries), red=0),
    Cure(tell_nobody_what_time_it_is, scripted(SCRIPTED, time_scenarios.followers_are_restarted), red=0),
    Cure(look_at_no_clock, scripted(SCRIPTED, time_scenarios.a_cluster_was_down), red=0),
    Cure(ask_nobody_what_time_it_was, scripted(SCRIPTED, time_scenarios.one_was_told_and_one_was_not), red=0),
)
