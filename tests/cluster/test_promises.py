"""The length of the promise that a leader asks of its followers: it grows at once, and falls when less was enough."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from sockpqd.cluster import limits
from sockpqd.cluster.raft.lease import Lease
from sockpqd.cluster.raft.quorum import EVER
from tests.cluster.helpers.small_cluster import SmallCluster

LONGEST_S = 0.6


class Leader:
    """A lease, and the measurements behind it."""

    def __init__(self) -> None:
        self.context = SimpleNamespace(now=100.0, promise_ms=0)
        self.age_s = 0.0
        self.lease = Lease(cast(Any, self.context), cast(Any, SimpleNamespace(acked_sent_at=self.acked)), LONGEST_S)

    def acked(self) -> float:
        return self.context.now - self.age_s

    def after(self, seconds: float, age_s: float) -> int:
        """Return the promise after this time, in which answers were this old."""
        self.age_s = age_s
        for _ in range(round(seconds * 10)):
            self.context.now += 0.1
            self.lease.tick()
        promise_ms: int = self.context.promise_ms
        return promise_ms


def test_it_grows_at_once_and_falls_when_much_less_was_enough_in_two_windows() -> None:
    leader = Leader()
    shortest = leader.after(1, 0.001)
    assert shortest == LONGEST_S * 1000 * limits.PROMISE_SHARE_MIN
    long = leader.after(0.2, 0.2)
    assert 200 * limits.PROMISE_FACTOR <= long < LONGEST_S * 1000
    assert leader.after(4 * limits.PROMISE_WINDOW_S, 0.2 * (1 + limits.PROMISE_FALL) / 2) == long
    assert leader.after(limits.PROMISE_WINDOW_S - 1, 0.05) == long
    assert shortest < leader.after(2 * limits.PROMISE_WINDOW_S, 0.05) < long
    assert leader.after(0.1, 0.5) == LONGEST_S * 1000
    assert leader.after(3 * limits.PROMISE_WINDOW_S, 1.0) == LONGEST_S * 1000       # no contact is no measure


def test_who_has_nobody_to_ask_measures_nothing() -> None:
    leader = Leader()
    leader.age_s = -EVER
    assert leader.after(4 * limits.PROMISE_WINDOW_S, -EVER) == LONGEST_S * 1000 * limits.PROMISE_SHARE_MIN


def test_what_came_too_late_for_the_lease_counts_as_so_old() -> None:
    leader = Leader()
    leader.after(1, 0.001)
    leader.age_s = 0.09
    leader.lease.lapsed(leader.context.now)
    assert leader.after(0.1, 0.001) >= 90 * limits.PROMISE_FACTOR
    leader.age_s = 2 * LONGEST_S
    leader.lease.lapsed(leader.context.now)
    assert leader.after(0.1, 0.001) < 0.2 * 1000, "no contact is no measure"


def test_a_node_that_is_alone_leads_for_ever() -> None:
    world = SmallCluster(1)
    leader = world.leader()
    world.run(4 * limits.PROMISE_WINDOW_S)
    assert world.serving() is leader
    world.put_now()
