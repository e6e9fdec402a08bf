"""The delay of a leader's housekeeping while it proposes entries and receives answers all the time."""

from __future__ import annotations

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.raft.transport import RaftTransport
from sockpqd.cluster.wire.messages import Info, Message
from tests.cluster.helpers.small_cluster import DELAY_S, SmallCluster
from tests.cluster.test_following import EVERY_S, SECONDS, housekeepings, load, longest

SOON_S = limits.HOUSEKEEPING_S + EVERY_S + DELAY_S
LATE_S = SOON_S + limits.LEADING_S


@pytest.fixture
def world() -> SmallCluster:
    """Return nodes that sleep until something is due, so that a leader has turns for proposals and answers only."""
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    return world


def test_it_is_late_by_no_more_than_leading_s(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    found = housekeepings(world.leader(), monkeypatch)
    for _ in load(world):
        pass
    assert found[-1] - found[0] > SECONDS - 2 * LATE_S
    assert longest(found) <= LATE_S
    assert len(found) < SECONDS / limits.HOUSEKEEPING_S / 4, "and it is put off, or this tests nothing"


def test_it_is_not_late_while_something_is_out_of_order(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RaftTransport, "unsettled", True)
    found = housekeepings(world.leader(), monkeypatch)
    for _ in load(world):
        pass
    assert longest(found[20:]) <= SOON_S        # the first ones were put off before


def test_nor_when_it_has_nothing_else_to_do(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A turn that a timer has begun is for what is due by time: a heartbeat, or a job that was delayed."""
    world.run(1.0)
    leader = world.leader()
    found = housekeepings(leader, monkeypatch)
    leader.up._housekeeping_at = world.now
    world.turn(leader.name)
    assert found == [world.now]


def test_a_leader_describes_itself_in_time(world: SmallCluster) -> None:
    leader, times = world.leader().name, []

    def note(source: str, target: str, message: Message) -> bool:
        if isinstance(message, Info) and source == leader and target == world.followers()[0].name:
            times.append(world.now)
        return True
    world.filter = note
    for _ in load(world):
        pass
    assert longest(times) <= limits.INFO_S + LATE_S
