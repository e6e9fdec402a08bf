"""Two entries in flight, and the leader's background sync: nothing is acknowledged before the disks have it."""

from __future__ import annotations

from concurrent.futures import Future

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.steady_lane import SteadyLane
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode

SYNC_S = 0.05
AFTER_S = 0.005                 # a sync is over, and the turn that saw it as well


@pytest.fixture(autouse=True, params=["steady-lane", "library"])
def lane(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """In both lanes let a second entry pay for the smallest ones."""
    monkeypatch.setattr(SteadyLane, "open", request.param == "steady-lane")
    for name, value in (
        ("OVERLAP_OPERATIONS_MIN", 1), ("SLOW_ANSWERS_S", 0.0), ("SLUGGISH_SYNC_S", 0.0), ("BRISK_SYNC_S", 0.0),
    ):
        monkeypatch.setattr(limits, name, value)


class LateSync(Future[float]):
    """A sync that ends after a while; before that nothing of it is on the disk."""

    def __init__(self, world: SmallCluster, node: SmallNode, file: int) -> None:
        super().__init__()
        self._world = world
        self._node = node
        self._file = file
        self._over_at = world.now + SYNC_S

    def done(self) -> bool:
        return self._world.now >= self._over_at

    def result(self, timeout: float | None = None) -> float:
        assert self.done(), "the loop would stand still"
        self._node.disk.sync(self._file)
        return SYNC_S


def slow_leader() -> tuple[SmallCluster, SmallNode]:
    """Return a leader whose measurements say that everything is slow, and whose background syncs take long now."""
    world = SmallCluster(3)
    leader = world.leader()
    for _ in range(2):
        world.put_now()
    world.run_until(world.settled)
    assert leader.up.syncing.pipelining.overlaps(world.now)
    leader.disk.sync_in_background = lambda file: LateSync(world, leader, file)     # type: ignore[method-assign]
    return world, leader


def propose(leader: SmallNode, data: bytes) -> Outcome:
    outcome = leader.propose(Put("q", 0, data))
    leader.world.turn(leader.name)
    return outcome


def test_the_second_entry_is_sent_and_neither_is_acknowledged_before_it_is_on_the_leaders_disk() -> None:
    world, leader = slow_leader()
    before = leader.up.journal.durable_index
    first, second = propose(leader, b"1"), propose(leader, b"2")
    third = propose(leader, b"3")
    assert leader.up.proposer.entries_in_flight == 2
    world.run(SYNC_S - AFTER_S)
    assert {node.up.journal.durable_index for node in world.followers()} == {before + 2}
    assert leader.up.journal.durable_index == before
    assert leader.up.replica.commit_index == before
    assert (first.state, second.state, third.state) == ("open", "open", "open")
    world.run(2 * AFTER_S + 0.01)
    assert (first.state, second.state) == ("applied", "open"), "the second one is in a frame of its own"
    world.run(SYNC_S + 0.01)
    assert second.state == "applied"
    world.run_until(lambda: third.state == "applied")
    assert world.bodies(leader.name)[2:] == [b"1", b"2", b"3"]


@pytest.mark.parametrize("after_s", [0.0, 0.01, SYNC_S + 0.02])
def test_who_loses_power_between_a_write_and_its_sync_loses_nothing_that_was_acknowledged(after_s: float) -> None:
    world, leader = slow_leader()
    outcomes = [propose(leader, b"%d" % number) for number in range(3)]
    world.run(after_s)
    acknowledged = [number for number, outcome in enumerate(outcomes) if outcome.state == "applied"]
    assert acknowledged == ([0] if after_s > SYNC_S else [])
    world.kill(leader.name)
    del leader.disk.__dict__["sync_in_background"]
    world.put_now(b"later")
    world.start(leader.name)
    world.run_until(world.settled)
    assert len(world.states()) == 1
    bodies = world.bodies(leader.name)
    assert [b"%d" % number for number in acknowledged] == bodies[2:2 + len(acknowledged)]
    assert sorted(bodies[2:-1]) == bodies[2:-1], "in the order of their proposal, whatever is left"


def test_a_leader_that_is_cut_off_with_two_entries_loses_both_and_acknowledges_neither() -> None:
    world, leader = slow_leader()
    others = " ".join(node.name for node in world.followers())
    world.cut(leader.name, others)
    outcomes = [propose(leader, b"lost"), propose(leader, b"lost too")]
    world.run_until(lambda: world.serving() not in (None, leader))
    world.put_now(b"kept")
    world.heal()
    world.run_until(world.settled)
    world.run(limits.OUTCOME_AFTER_LOSS_S)
    assert [outcome.state for outcome in outcomes] == ["refused", "refused"], "certainly not executed"
    assert world.bodies(leader.name)[2:] == [b"kept"]
