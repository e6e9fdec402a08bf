"""Records of ended jobs lie in pages on every node, although all its jobs are in memory."""

from __future__ import annotations

from pathlib import Path

import pytest

from sockpqd.cluster.limits import COMPACTION_REST_S
from sockpqd.cluster.paging import file_space
from sockpqd.core import ConfigureQueue, End, Get, Handed, How, Put, PutWith, QueueChange, StoredNumber
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode

BLOCK = 4


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sockpqd.core.records.block.RECORD_BLOCK_MAX", BLOCK)
    monkeypatch.setattr(file_space, "WRITE_BYTES", 100)


def finish(world: SmallCluster, count: int) -> list[int]:
    """Put, take and finish as many jobs; returns their numbers."""
    leader, numbers = world.leader(), []
    for _ in range(count):
        put = leader.propose(PutWith(Put("q", 0, b"job"), number=True))
        got = leader.propose(Get(("q",)))
        world.run_until(lambda got=got: got.reply is not None)
        assert isinstance(put.reply, StoredNumber)
        assert isinstance(got.reply, Handed)
        done = leader.propose(End(got.reply.id, How.DONE, text=b"result of %d" % put.reply.number))
        world.run_until(lambda done=done: done.reply is not None)
        numbers.append(put.reply.number)
    world.run_until(lambda: world.settled())
    return numbers


def retaining(count: int = 3) -> SmallCluster:
    """Return a cluster with a queue that keeps records for a day."""
    world = SmallCluster(count)
    configured = world.leader().propose(ConfigureQueue("q", QueueChange(retain_ms=86_400_000)))
    world.run_until(lambda: configured.reply is not None)
    return world


def page_count(node: SmallNode) -> int:
    """Return the number of pages of records that it has."""
    return sum(block.page is not None for _, block in node.machine._state.records._blocks.values())


def compact(world: SmallCluster, node: SmallNode) -> None:
    """Let the node write a snapshot."""
    before = node.up.store.newest_index
    node.up.replica.compact()
    world.run_until(lambda: node.up.store.newest_index > before)


def assert_results(world: SmallCluster, numbers: list[int]) -> None:
    """Assert that all nodes have the records, and the same state."""
    world.run_until(lambda: world.settled())
    for node in world:
        assert [node.machine.result(number) for number in numbers] == [b"result of %d" % number for number in numbers]
    assert len(world.states()) == 1


def test_a_cluster_without_records_has_no_files_of_pages() -> None:
    world = SmallCluster(3)
    for _ in range(20):
        world.put_now()
    for node in world:
        compact(world, node)
        assert node.disk.names(Path("/pages")) == []
        assert node.up.paging.files.count == 0


def test_records_are_in_pages_that_snapshots_name_and_starts_find() -> None:
    world = retaining()
    numbers = finish(world, 5 * BLOCK + 1)
    for node in world:
        assert page_count(node) == 5
        assert node.disk.names(Path("/pages")) == ["pages-00000001"]
        compact(world, node)
        assert node.up.store._pages.named
    numbers += finish(world, 1)
    for node in world:
        world.kill(node.name)
    for name in world.nodes:
        world.start(name)
    numbers += finish(world, 2 * BLOCK)
    assert_results(world, numbers)
    assert {page_count(node) for node in world} == {7}


def test_a_node_that_lost_its_disk_writes_pages_of_its_own() -> None:
    world = retaining()
    numbers = finish(world, 5 * BLOCK + 1)
    for node in world:
        compact(world, node)
        node.up.journal.release()
    lost = world.followers()[0].name
    world.kill(lost)
    world.wipe(lost)
    world.run(COMPACTION_REST_S)
    world.start(lost)
    numbers += finish(world, 1)
    world.run_until(lambda: world[lost].machine.index == world.leader().machine.index, 60.0)
    assert page_count(world[lost]) == 5
    assert_results(world, numbers)


def test_records_of_a_whole_snapshot_go_to_pages() -> None:
    """As on a node that kept all in memory before."""
    world = retaining(1)
    numbers = finish(world, 3 * BLOCK + 1)
    node = world["n1"]
    node.up.store.whole_wanted = True
    compact(world, node)
    assert not any(node.up.store._pages.named.values())
    world.kill("n1")
    for name in node.disk.names(Path("/pages")):
        del node.disk.names_now[f"/pages/{name}"]
    world.start("n1")
    assert_results(world, numbers)
    assert page_count(node) == 3
