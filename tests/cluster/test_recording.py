"""The types of events that a node records."""

from __future__ import annotations

from sockpqd.cluster.forwarding.recording import Recording
from sockpqd.cluster.limits import RECORDED_S
from sockpqd.core import Machine, Put
from tests.cluster.helpers.small_cluster import SmallCluster


def test_a_type_is_recorded_while_it_is_subscribed_anywhere_and_for_a_while_after() -> None:
    machine = Machine()
    changes: list[set[str]] = []
    recording = Recording(machine, lambda types: changes.append({*types}))
    recording.subscribed({"PUT"}, 0.0)
    recording.heard(("FINQ",), 10.0)
    recording.heard((), 11.0)
    recording.subscribed(frozenset(), 20.0)
    recording.update(10.0 + RECORDED_S - 1)
    assert changes == [{"PUT"}, {"PUT", "FINQ"}]
    assert len(machine.apply(1, 0, 0, [Put("q", 0, b"")]).events) == 1
    recording.update(10.0 + RECORDED_S)
    recording.update(20.0 + RECORDED_S)
    assert changes[2:] == [{"PUT"}, set()]
    assert machine.apply(2, 0, 0, [Put("q", 0, b"")]).events == []


def test_what_is_subscribed_here_is_recorded_for_ever() -> None:
    changes: list[set[str]] = []
    recording = Recording(Machine(), lambda types: changes.append({*types}))
    recording.subscribed({"PUT"}, 0.0)
    for now in (100.0, 1000.0):
        recording.update(now)
    assert changes == [{"PUT"}]


def test_followers_hear_of_a_commit_at_once_while_somebody_listens() -> None:
    world = SmallCluster(heartbeat_ms=400)
    leader = world.leader()
    world.run_until(world.settled)

    def lag_s() -> float:
        """Return how long after the leader the last follower has executed a job."""
        world.run(1.0)
        world.put_now()
        begun, index = world.now, leader.up.machine.index
        world.run_until(lambda: all(node.up.machine.index >= index for node in world))
        return world.now - begun

    assert max(lag_s() for _ in range(3)) > 0.05        # the commit index comes with the next heartbeat
    world.followers()[0].up.subscribed(frozenset({"FINI"}))
    assert max(lag_s() for _ in range(3)) < 0.05


def test_followers_execute_every_entry_of_a_stream_at_once_while_somebody_listens() -> None:
    """Otherwise they postpone some, to execute them together."""
    world = SmallCluster()
    world.run_until(world.settled)
    follower = world.followers()[0].up

    def most_unapplied() -> int:
        most = 0
        for _ in range(30):
            world.put_now()
            replica = follower.replica
            most = max(most, replica.commit_index - replica.applied_index)
        return most

    world.run(1.0)
    assert most_unapplied() > 0
    world.followers()[1].up.subscribed(frozenset({"FINI"}))
    world.run(1.0)
    assert most_unapplied() == 0
