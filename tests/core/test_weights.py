"""WEIGHT of groups: what a charge is divided by, and the shares that follow (spec/fair 3, 7)."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core import Configure, ConfigureGroup, End, FairChange, How, Operation, Sched, Touch
from sockpqd.core.fair.levels import GroupAccount, Levels
from tests.core.test_groups import BY_FAIR, FROM_Q, Cluster

S = 1_000_000                       # microseconds
NS = 1_000_000_000                  # nanoseconds of a second
VECTORS = {                         # by WEIGHT: priority and times of levels in nanoseconds after each charge
    1: [
        (500_000_000, [500_000_000, 0, 0, 0, 0]),
        (1_170_500_000_000, [1_500_000_000, 9 * NS, 20 * NS, 0, 0]),
        (1_171_500_001_000, [1_500_000_000, 9 * NS, 20 * NS, 0, 1_000_001_000]),
    ],
    3: [
        (166_666_666, [166_666_666, 0, 0, 0, 0]),
        (790_500_000_000, [1_166_666_666, 9 * NS, 0, 0, 0]),
        (790_833_333_666, [1_166_666_666, 9 * NS, 0, 0, 333_333_666]),
    ],
    1000: [
        (500_000, [500_000, 0, 0, 0, 0]),
        (601_070_000_000, [30_500_000, 0, 0, 0, 0]),
        (601_071_000_001, [30_500_000, 0, 0, 0, 1_000_001]),
    ],
}


@pytest.mark.parametrize("weight", VECTORS)
def test_half_a_second_then_ten_minutes_up_to_the_cap_then_a_second_and_a_microsecond(weight: int) -> None:
    levels, account = Levels(), GroupAccount("g")
    levels.standing[0] += 1
    for charge_us, (priority_ns, times_ns) in zip((S // 2, 600 * S, S + 1), VECTORS[weight], strict=True):
        levels.charge(account, charge_us, weight)
        assert (account.priority_ns, levels.time_ns[:5]) == (priority_ns, times_ns)
    assert (account.used_us, account.level) == (601_500_001, 4)


def test_times_are_shown_in_whole_microseconds_and_used_time_is_what_ran() -> None:
    cluster = Cluster(Sched.FAIR)
    cluster.do(ConfigureGroup("a", weight=1000))
    cluster.put("a")
    job = cluster.get()
    assert job is not None
    cluster.do(Touch(job[0], ran_ms=1))
    cluster.do(ConfigureGroup("a", weight=3))
    cluster.do(End(job[0], How.DONE, ran_ms=1))
    shown = cluster.machine.fair_group("a")
    assert shown is not None
    assert (shown.used_us, shown.priority_us) == (2000, 334)            # 1 + 333.333
    assert cluster.machine.fair_levels()[0].time_us == 334


@pytest.mark.parametrize(("operation", "thresholds_s", "longest_ms"), [
    pytest.param(FROM_Q, (0, 86_400), 100, id="SCHED FAIR with one level"),
    pytest.param(FROM_Q, (0, 1, 2, 3, 4), 100, id="SCHED FAIR in the last level"),
    pytest.param(BY_FAIR, (0, 1, 2, 3, 4), 300, id="BY FAIR with jobs of 100 to 300 ms"),
])
def test_shares_are_as_the_weights_say_over_ten_thousand_hand_outs(
    operation: Operation, thresholds_s: tuple[int, ...], longest_ms: int,
) -> None:
    weights, random, cluster = {"a": 1, "b": 2, "c": 7, "d": 10}, Random(1), Cluster(Sched.FAIR)
    cluster.do(Configure(fair=FairChange(thresholds_s)))
    for group, weight in weights.items():
        cluster.do(ConfigureGroup(group, weight=weight))
        cluster.put(group, 2)
    ran = dict.fromkeys(weights, 0)
    for number in range(-2000, 10_000):         # at first all reach the last level
        job = cluster.get(operation)
        assert job is not None
        ran_ms = random.randint(100, longest_ms)
        cluster.do(End(job[0], How.LATER, yielded=True, ran_ms=ran_ms))
        if number >= 0:
            ran[job[1]] += ran_ms
    for group, weight in weights.items():
        share = weight / sum(weights.values())
        assert abs(ran[group] / sum(ran.values()) - share) < 0.02 * share, ran
