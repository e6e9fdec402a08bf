"""A node that was away applies what it missed in slices, and receives its peers' messages between them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from sockpqd.cluster import ClusterNode, Member, NodeSettings, limits
from sockpqd.cluster.driver import Driver
from sockpqd.cluster.errors import ApplyFailed
from sockpqd.cluster.execution import Execution
from sockpqd.cluster.wire.messages import Ack, Message, PreVote
from sockpqd.core import Applied, Put
from tests.cluster.helpers import small_cluster
from tests.cluster.helpers.small_cluster import Outcome, SmallCluster, SmallNode
from tests.cluster.test_directories import PATIENCE_S, Ignorant

ENTRIES = 60


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> SmallCluster:
    """Three nodes, whose followers apply an entry in each turn from now on, and take a turn at a time."""
    world = SmallCluster(3)
    world.put_now()
    world.run_until(world.settled)
    monkeypatch.setattr(Driver, "_applied_enough", lambda driver: True)
    monkeypatch.setattr(small_cluster, "BUSY_TURNS_MAX", 1)
    return world


def fill(world: SmallCluster) -> None:
    for number in range(ENTRIES):
        world.put_now(b"%d" % number)


def restarted(world: SmallCluster) -> SmallNode:
    """Return a follower that has started again with all entries in its journal, and none in its snapshot."""
    fill(world)
    world.run_until(world.settled)
    world.run(1.0)                              # it syncs the commit index
    name = world.followers()[0].name
    world.kill(name)
    return world.start(name)


def test_a_start_applies_a_slice_and_turns_apply_the_rest(world: SmallCluster) -> None:
    node = restarted(world)
    driver = node.up
    applied = driver.replica.applied_index
    assert driver.recovering
    assert driver.busy
    assert applied < ENTRIES
    driver.turn()
    assert driver.replica.applied_index == applied + 1
    while driver.recovering:
        assert driver.busy
        driver.turn()
    assert driver.replica.applied_index == driver.replica.commit_index >= ENTRIES
    world.run_until(world.settled)
    assert not driver.replica.behind
    assert len(world.states()) == 1
    assert len({node.up.chain.value for node in world}) == 1


def test_it_gives_nothing_up_while_it_recovers(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """It needs the entries behind an older snapshot, if the newest one is damaged; and its ballast stays as it is."""
    node = restarted(world)
    driver = node.up
    made: list[bool] = []
    monkeypatch.setattr(driver.capacity, "_make_room", lambda now: made.append(driver.recovering))
    monkeypatch.setattr(driver.capacity.ballast, "keep", lambda *_: made.append(driver.recovering))
    monkeypatch.setattr(limits, "ROOM_LOOK_S", 0.0)
    while driver.recovering:
        driver.turn()
    world.run_until(lambda: len(made) > 1)
    assert True not in made


def test_it_answers_its_leader_while_it_recovers(world: SmallCluster) -> None:
    node = restarted(world)
    answered: list[bool] = []

    def note(source: str, target: str, message: Message) -> bool:
        if source == node.name and type(message) is Ack:
            answered.append(node.up.recovering)
        return True
    world.filter = note
    world.run_until(world.settled)
    assert True in answered


def test_elections_of_the_log_are_not_those_since_the_start(world: SmallCluster) -> None:
    node = restarted(world)
    while node.up.recovering:
        node.up.turn()
    assert node.up.leader_changes == 0


def test_no_snapshot_of_a_part_is_begun(world: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    node = restarted(world)
    begun: list[bool] = []
    monkeypatch.setattr(node.up._compaction, "begins", lambda now, **_: begun.append(node.up.recovering))
    while node.up.recovering:
        node.up.turn()
        world.run(limits.HOUSEKEEPING_S)
    world.run(1.0)
    assert begun
    assert True not in begun


def test_a_node_alone_leads_when_it_has_applied_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Driver, "_applied_enough", lambda driver: True)
    world = SmallCluster(1)
    fill(world)
    world.run(1.0)
    world.kill("n1")
    node = world.start("n1")
    while node.up.recovering:
        assert not node.up.replica.is_leader
        node.up.turn()
    assert world.leader() is node
    assert len(world.bodies("n1")) == ENTRIES


def test_who_is_behind_does_not_stand_for_election(world: SmallCluster) -> None:
    fill(world)
    world.run_until(world.settled)
    world.run(1.0)
    names = [node.name for node in world]
    for name in names:
        world.kill(name)
    asked: list[bool] = []

    def note(source: str, target: str, message: Message) -> bool:
        if type(message) is PreVote:
            asked.append(world[source].up.replica.behind)
        return True
    world.filter = note
    for name in names:
        world.start(name)
    world.leader()
    world.run_until(world.settled)
    assert asked
    assert True not in asked
    assert len(world.states()) == 1


def settings(data_dir: Path) -> NodeSettings:
    member = Member("n1", "127.0.0.1:0", "127.0.0.1:0")
    return NodeSettings(name="n1", data_dir=data_dir, peer_listen="127.0.0.1:0", members=(member,), version="test")


async def put_all(data_dir: Path) -> None:
    """Put jobs on a node alone, each in an entry of its own, and stop it."""
    node = ClusterNode(settings(data_dir), Ignorant())
    await node.start()
    try:
        async with asyncio.timeout(PATIENCE_S):
            while not node.serving:
                await asyncio.sleep(limits.POLL_S)
            for number in range(ENTRIES):
                outcome = Outcome()
                node.propose(Put("q", 0, b"%d" % number), outcome)
                while outcome.state == "open":
                    await asyncio.sleep(0)
    finally:
        await node.stop()


async def turns_during_a_start(data_dir: Path) -> tuple[int, int]:
    """Return the turns that another task has until a node has started, and the jobs that the node has then."""
    node = ClusterNode(settings(data_dir), Ignorant())
    starting = asyncio.create_task(node.start())
    turns = 0
    try:
        while not starting.done():
            turns += 1
            await asyncio.sleep(0)
        await starting
        counts = node.machine.counts("q")
        return turns, 0 if counts is None else counts.ready
    finally:
        await node.stop()


def test_other_tasks_have_their_turns_while_a_node_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "APPLYING_S", 0.0)
    asyncio.run(put_all(tmp_path))
    turns, ready = asyncio.run(turns_during_a_start(tmp_path))
    assert turns > ENTRIES // 2, "one for each entry and more, as a turn applies one"
    assert ready >= ENTRIES - 1, "the last one may be known to be committed only when this node leads"


def test_a_start_fails_when_an_entry_cannot_be_applied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "APPLYING_S", 0.0)
    asyncio.run(put_all(tmp_path))
    real = Execution.apply

    def fails(execution: Execution, index: int, data: bytes) -> Applied | None:
        if index > ENTRIES // 2:
            raise ApplyFailed(f"entry {index} cannot be applied")
        return real(execution, index, data)
    monkeypatch.setattr(Execution, "apply", fails)
    with pytest.raises(ApplyFailed):
        asyncio.run(turns_during_a_start(tmp_path))
