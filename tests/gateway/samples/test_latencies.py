"""Waiting and running times of jobs, from a part of the hand-outs."""

from __future__ import annotations

from math import isnan

import pytest

from sockpqd.core import Done, Get, Machine, Put
from sockpqd.core.store.latencies import OFF, STEPS, LatencyMeter, step_of
from sockpqd.gateway.samples.latencies import BOUNDS_S, MEASURED_MAX, QueueLatencies


class OneMachine:
    """A cluster of which only the machine is used."""

    def __init__(self) -> None:
        self.machine = Machine()
        self.now_ms = 1_700_000_000_000

    def apply(self, *operations: object) -> None:
        """Apply these operations as one entry, at `now_ms`."""
        self.machine.apply(self.machine.index + 1, self.now_ms, 0, operations)      # type: ignore[arg-type]


def seen(cluster: OneMachine) -> QueueLatencies:
    """Return latencies that are measured from now on."""
    latencies = QueueLatencies()
    latencies.look(cluster)     # type: ignore[arg-type]
    return latencies


def test_a_step_has_the_durations_below_its_bound() -> None:
    for ms in (0, 1, 2, 3, 10, 999, 1000, 86_400_000):
        step = step_of(ms)
        assert ms < 1000 * BOUNDS_S[step]
        assert step == 0 or ms >= 1000 * BOUNDS_S[step - 1] - 1e-6
    assert step_of(10**15) == STEPS - 1
    days_25_ms = 25 * 86_400_000
    assert [step_of(ms) for ms in (days_25_ms // 2, days_25_ms)] == [STEPS - 3, STEPS - 1]


def test_jobs_wait_from_their_place_and_run_from_their_hand_out() -> None:
    cluster = OneMachine()
    latencies = seen(cluster)
    for wait_ms, run_ms in (*[(100, 10)] * 18, (10_000, 1000), (10_000, 1000)):
        cluster.apply(Put("a", 0, b""))
        cluster.now_ms += wait_ms
        cluster.apply(Get(("a",)))
        cluster.now_ms += run_ms
        cluster.apply(Done(cluster.machine.next_id - 1))
    latencies.look(cluster)     # type: ignore[arg-type]
    for found in (latencies.of("a"), latencies.total):
        assert found == (pytest.approx(0.1, rel=0.5), pytest.approx(10, rel=0.5),
                         pytest.approx(0.01, rel=0.5), pytest.approx(1, rel=0.5))
    assert all(map(isnan, latencies.of("b")))
    latencies.look(cluster)     # type: ignore[arg-type]
    assert all(map(isnan, latencies.total))


def test_a_hand_out_that_still_runs_has_only_waited() -> None:
    cluster = OneMachine()
    latencies = seen(cluster)
    cluster.apply(Put("a", 0, b""), Get(("a",)))
    latencies.look(cluster)     # type: ignore[arg-type]
    assert [isnan(one) for one in latencies.of("a")] == [False, False, True, True]
    cluster.now_ms += 5000
    cluster.apply(Done(1))
    latencies.look(cluster)     # type: ignore[arg-type]
    assert latencies.of("a")[2:] == (pytest.approx(5, rel=0.5),) * 2


def test_of_very_many_hand_outs_a_part_is_measured_and_nothing_is_left_over() -> None:
    cluster = OneMachine()
    latencies = seen(cluster)
    meter: LatencyMeter = cluster.machine._state.latencies
    number = 3 * MEASURED_MAX
    for _ in range(2):
        first = cluster.machine.next_id
        cluster.apply(*[Put("a", 0, b"")] * number, *[Get(("a",))] * number)
        measured = len(meter.started)
        latencies.look(cluster)     # type: ignore[arg-type]
        cluster.apply(*[Done(first + at) for at in range(number)])
        assert not meter.started
    assert MEASURED_MAX / 2 <= measured <= MEASURED_MAX


def test_nothing_is_measured_before_somebody_looks() -> None:
    cluster = OneMachine()
    cluster.apply(Put("a", 0, b""), Get(("a",)))
    meter: LatencyMeter = cluster.machine._state.latencies
    assert (meter.mask, meter.started, meter.waited) == (OFF, {}, {})
