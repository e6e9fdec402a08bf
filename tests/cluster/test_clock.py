"""Replicated time, as leaders stamp it."""

from __future__ import annotations

from cluster.clock import ReplicatedTime, SystemClock
from core import Get, Handed, Later, NotFound, Put, Then
from tests.cluster.small_cluster import SmallCluster


class HandClock:
    """A clock set by hand."""

    def __init__(self) -> None:
        self.seconds, self.wall = 0.0, 1_000_000

    def monotonic(self) -> float:
        return self.seconds

    def wall_ms(self) -> int:
        return self.wall


def test_it_reads_the_wall_clock_once_and_then_follows_the_monotonic_one() -> None:
    clock = HandClock()
    time = ReplicatedTime(clock)
    time.begin()
    clock.wall = 5
    clock.seconds = 2.5
    assert time.now_ms() == 1_002_500


def test_it_never_falls_behind_what_was_reached_before() -> None:
    clock = HandClock()
    time = ReplicatedTime(clock)
    time.begin()
    time.reach(2_000_000)
    time.reach(1_000)
    clock.seconds = 1.0
    assert time.now_ms() == 2_001_000


def test_the_system_clock_gives_both() -> None:
    clock = SystemClock()
    assert clock.monotonic() <= clock.monotonic()
    assert clock.wall_ms() > 1_700_000_000_000


def get(world: SmallCluster, expire_ms: int, then: Then = Then.DEFAULT) -> int:
    outcome = world.leader().propose(Get(("q",), expire_ms, then))
    world.run_until(lambda: outcome.state != "open")
    assert isinstance(outcome.reply, Handed)
    return outcome.reply.id


def test_a_lease_ends_on_time_on_an_idle_cluster_and_never_early() -> None:
    world = SmallCluster(3)
    world.put_now()
    get(world, 1000)
    world.run(0.98)
    assert world.leader().machine.total("q").running == 1
    world.run(0.1)
    assert world.leader().machine.total("q").running == 0
    assert world.leader().machine.total("q").jobs == 1


def test_a_step_of_the_wall_clock_ends_no_lease() -> None:
    world = SmallCluster(3)
    world.put_now()
    number = get(world, 60_000)
    for node in world:
        node.wall_offset_ms = 500_000_000
    world.run(1)
    later = world.leader().propose(Later(number))
    world.run_until(lambda: later.state != "open")
    assert not isinstance(later.reply, NotFound)


def test_after_a_failover_a_worker_has_the_grace_to_say_done() -> None:
    world = SmallCluster(3, failover_grace_ms=5_000)
    world.put_now()
    get(world, 1000, Then.DONE)
    world.run(0.9)
    world.kill(world.leader().name)
    world.run(3)
    assert world.leader().machine.total("q").running == 1
    world.run(4)
    assert world.leader().machine.total("q").running == 0


def test_leaders_have_the_smallest_server_id_and_old_ones_get_the_next() -> None:
    world = SmallCluster(3)
    put = world.leader().propose(Put("q", 0, b""))
    world.run_until(lambda: put.state != "open")
    first = world.leader().name
    assert world.leader().machine.server_ids[first] == 1
    world.kill(first)
    second = world.leader()
    ids = second.machine.server_ids
    assert ids[second.name] == min(ids.values())
    assert ids[first] > 3
