"""A leader whose disk has no room for jobs, or stalls at each sync, hands over to a node whose disk is well."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import pytest

from sockpqd.cluster import limits
from sockpqd.core import Put
from tests.cluster.helpers.memory_disk import MemoryDisk
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode

SOON_S = 1.0                    # after the trouble another node must serve
LONG_S = 30.0
STALL_S = 0.4                   # of one sync: less than the shortest election timeout of 0.6 s,
SHORT_STALL_S = 0.25            # and so are two of these, after which a leader need not fall silent
LARGE = bytes(2000)


def cluster(count: int = 3, *, sleeps: bool = True) -> tuple[SmallCluster, SmallNode]:
    world = SmallCluster(count, sleeps=sleeps)
    leader = world.leader()
    world.put_now()
    return world, leader


def mark(node: SmallNode, *, disk: bool = True) -> None:
    """Put a node beyond the mark of its disk, or of its memory."""
    node.up.capacity.marked, node.up.capacity.disk_marked = True, disk


def unmark(node: SmallNode) -> None:
    node.up.capacity.marked = node.up.capacity.disk_marked = False


def keeps(world: SmallCluster, holds: Callable[[], bool], seconds: float = LONG_S) -> bool:
    """Return whether the condition holds all the time."""
    for _ in range(int(seconds * 10)):
        world.run(0.1)
        if not holds():
            return False
    return True


# Room

def test_a_leader_without_room_hands_over_and_jobs_are_accepted_at_once() -> None:
    world, leader = cluster()
    world.run(limits.INFO_S)
    mark(leader)
    world.run_until(lambda: world.serving() not in (None, leader), SOON_S)
    after = world.leader()
    world.run_until(lambda: not after.up.full, SOON_S)
    world.put_now()
    assert keeps(world, lambda: world.serving() is after)
    unmark(leader)
    assert keeps(world, lambda: world.serving() is after)


def test_it_does_before_its_journal_is_exhausted() -> None:
    world, leader = cluster()
    leader.disk.free_bytes = 0
    body, puts = bytes(20_000), []
    while world.serving() is leader:
        puts.append(leader.propose(Put("q", 0, body)))
        world.run(0.05)
        assert not leader.up.capacity.exhausted
    world.run_until(lambda: world.serving() not in (None, leader), SOON_S)
    assert {put.state for put in puts} <= {"applied", "refused"}


def test_of_two_followers_the_one_with_room_leads() -> None:
    world, leader = cluster(5)
    full, *others = world.followers()
    mark(full)
    world.run(2 * limits.INFO_S)
    mark(leader)
    world.run_until(lambda: world.serving() in others, SOON_S)


@pytest.mark.parametrize("what", ["others full", "another down", "memory"])
def test_it_stays_where_another_leader_could_accept_no_jobs_either(what: str) -> None:
    world, leader = cluster()
    other = world.followers()[0]
    if what == "others full":
        mark(other)
    elif what == "another down":
        world.kill(other.name)
    world.run(2 * limits.INFO_S)
    mark(leader, disk=what != "memory")
    assert keeps(world, lambda: world.serving() is leader)
    assert leader.up.full


def test_it_stays_where_all_disks_fill_up_together() -> None:
    world, leader = cluster(sleeps=False)       # as while they write what fills them
    world.run(limits.INFO_S)
    for node in (leader, *world.followers()):
        mark(node)
        world.run(0.02)
    assert keeps(world, lambda: world.serving() is leader)
    assert leader.serving_log == [True]


def test_a_node_without_room_that_was_elected_hands_over_at_once() -> None:
    world, leader = cluster()
    full, other = world.followers()
    mark(full)
    world.run(2 * limits.INFO_S)
    assert leader.up.leadership.handover.begin(full.name) is None
    world.run_until(lambda: world.serving() is full, SOON_S)
    leader.up.leadership.handover.end()
    world.run_until(lambda: world.serving() in (leader, other), SOON_S)


def test_a_preferred_node_without_room_does_not_lead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PREFERENCE_REST_S", 3.0)
    world, leader = cluster()
    preferred = world.followers()[0]
    preferred.prefer = preferred.up.leadership.preference._own = 90
    mark(preferred)
    assert keeps(world, lambda: world.serving() is leader)
    unmark(preferred)
    world.run_until(lambda: world.serving() is preferred)


def test_if_nobody_takes_over_it_serves_again_and_rests() -> None:
    world, leader = cluster()
    world.run(limits.INFO_S)
    world.filter = lambda source, target, message: type(message).__name__ != "TimeoutNow"
    mark(leader)
    world.run_until(lambda: world.serving() is None, SOON_S)
    world.leader(limits.TRANSFER_S + SOON_S)
    assert world.serving() is leader
    assert keeps(world, lambda: world.serving() is leader, limits.DISK_REST_S - SOON_S)
    world.filter = lambda source, target, message: True
    world.run_until(lambda: world.serving() not in (None, leader), limits.DISK_REST_S)


def test_it_does_not_wait_for_a_node_that_ends_instead_of_taking_over() -> None:
    world, leader = cluster()
    world.run(limits.INFO_S)
    world.filter = lambda source, target, message: type(message).__name__ != "TimeoutNow"
    mark(leader)
    world.run_until(lambda: world.serving() is None, SOON_S)
    chosen = leader.up.leadership.disk_handover._successor
    assert chosen is not None
    world.kill(chosen.name)
    world.run_until(lambda: world.serving() is leader, SOON_S)


# Speed

class Stalled(Future[float]):
    """A sync that ends at some time of a simulated clock, or when it is waited for."""

    def __init__(self, world: SmallCluster, sync: Callable[[], None], seconds: float) -> None:
        super().__init__()
        self._world = world
        self._sync = sync
        self._seconds = seconds
        self._ends_at = world.now + seconds

    def done(self) -> bool:
        return self._world.now >= self._ends_at

    def result(self, timeout: float | None = None) -> float:
        self._sync()
        return self._seconds


def stall(world: SmallCluster, node: SmallNode, times: int = 10**6, seconds: float = STALL_S) -> None:
    """Make the next `times` syncs in the thread take this long."""
    left, quickly = [times], MemoryDisk.sync_in_background

    def sync_in_background(file: int) -> Future[float]:
        left[0] -= 1
        if left[0] < 0:
            return quickly(node.disk, file)
        return Stalled(world, lambda: node.disk.sync(file), seconds)
    node.disk.sync_in_background = sync_in_background       # type: ignore[method-assign]


@pytest.fixture
def _beside(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sync LARGE jobs in the thread on every disk."""
    monkeypatch.setattr(limits, "BACKGROUND_SYNC_BYTES", 1000)


def load(world: SmallCluster, seconds: float, outcomes: list[Outcome]) -> None:
    """Keep one job of one client in flight, at the node that serves."""
    ends_at = world.now + seconds
    while world.now < ends_at:
        node = world.serving()
        if node is not None and (not outcomes or outcomes[-1].state != "open"):
            outcomes.append(node.propose(Put("q", 0, LARGE)))
        world.run(0.01)


@pytest.mark.usefixtures("_beside")
def test_a_leader_whose_disk_stalls_again_hands_over_once_while_no_client_waits_for_it() -> None:
    world, leader = cluster()
    world.run(limits.INFO_S)
    outcomes: list[Outcome] = []
    stall(world, leader)
    load(world, STALL_S + 0.25, outcomes)
    after = world.serving()
    assert after not in (None, leader)          # the second stall is not over
    load(world, LONG_S, outcomes)
    assert world.serving() is after
    first, second, *others = [outcome.state for outcome in outcomes[:-1]]
    assert (first, second) == ("applied", "refused")
    assert set(others) == {"applied"}
    assert len(others) > 500
    assert leader.serving_log == [True, False]


@pytest.mark.usefixtures("_beside")
def test_a_single_stall_moves_nothing() -> None:
    world, leader = cluster()
    outcomes: list[Outcome] = []
    for _ in range(5):
        stall(world, leader, 1)
        load(world, 3.0, outcomes)
    assert leader.serving_log == [True]


@pytest.mark.usefixtures("_beside")
def test_after_a_stall_there_is_one_probe_and_clients_go_on() -> None:
    world, leader = cluster()
    stall(world, leader, 1)
    last = leader.up.journal.last_index
    for entries in (2, 3, 4):
        outcome = world.put(LARGE)
        world.run(STALL_S + 0.1)
        assert outcome.state == "applied"
        assert not leader.up.proposer.paused
        assert leader.up.journal.last_index == last + entries


@pytest.mark.usefixtures("_beside")
def test_a_node_alone_needs_no_probe() -> None:
    world, leader = cluster(1)
    stall(world, leader, 1)
    for _ in range(2):
        outcome = world.put(LARGE)
        world.run(2 * STALL_S)
        assert outcome.state == "applied"
        assert not leader.up.proposer.paused
    assert len(world.bodies("n1")) == 3


@pytest.mark.usefixtures("_beside")
@pytest.mark.parametrize("lost", ["offline", "cut"])
def test_nothing_stays_kept_back_when_it_stops_serving_meanwhile(lost: str) -> None:
    world, leader = cluster()
    stall(world, leader)
    first = world.put(LARGE)
    world.run_until(lambda: first.state == "applied")
    world.run_until(lambda: leader.up.proposer.paused)
    if lost == "cut":
        world.cut(leader.name, " ".join(node.name for node in world.followers()))
    else:
        leader.up.leadership.online = False
    world.run_until(lambda: world.serving() not in (None, leader))
    world.heal()
    del leader.disk.sync_in_background
    world.run(5)
    assert not leader.up.proposer.paused
    leader.up.leadership.online = True
    world.run(1)                                # the others hear of it
    assert world.leader().up.leadership.handover.begin(leader.name) is None
    world.run_until(lambda: world.serving() is leader)
    world.put_now()


@pytest.mark.usefixtures("_beside")
def test_nor_do_disks_that_all_stall() -> None:
    world, leader = cluster()
    for node in world:
        stall(world, node, seconds=SHORT_STALL_S)
    load(world, LONG_S, [])
    assert world.leader() is leader
    assert leader.serving_log == [True]
