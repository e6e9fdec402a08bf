"""Opening the files of a node: what of the journal is read at the start."""

from __future__ import annotations

from pathlib import Path

import pytest

from sockpqd.cluster.node import open_storage
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.paging.paging import paging_machine
from sockpqd.cluster.snapshots.snapshot_store import SnapshotDamaged
from sockpqd.cluster.storage.disk import Disk
from tests.cluster.test_named_pages import Log, Node

SNAPSHOTS = 3


def start(root: Path) -> tuple[int, int, int]:
    """Start a node; return its newest snapshot, and the first entries it has in memory, and at all."""
    disk = Disk()
    pages = PageFiles(root / "pages", disk)
    journal, store = open_storage(root, disk, disk, paging_machine(pages, 0), pages)
    try:
        return store.newest_index, journal.first_index, journal.oldest_index
    finally:
        store.close()
        journal.close()


@pytest.fixture
def node(tmp_path: Path) -> Node:
    """A running node with two snapshots, which keeps its whole journal for feeds."""
    node = Node(Log(), Disk(), root=tmp_path)
    node.journal.feed_bytes = 1 << 30
    for _ in range(SNAPSHOTS):
        for _ in range(200):
            node.log.put(1)
            node.follow()
            node.journal.setRaftCommitIndex(node.journal.last_index)
        node.compact()
    return node


def test_a_start_reads_from_the_older_snapshot_on(node: Node, tmp_path: Path) -> None:
    newest, older = node.store.newest_index, node.store.kept()[0]
    node.close()
    index, first, oldest = start(tmp_path)
    assert (index, oldest) == (newest, 1)
    assert 1 < first < older


def test_without_a_sound_snapshot_it_reads_the_whole_journal(node: Node, tmp_path: Path) -> None:
    kept = [node.store.path(index) for index in node.store.kept()]
    node.close()
    for path in kept:
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 4
        path.write_bytes(data)
    assert start(tmp_path) == (0, 1, 1)


def test_where_that_begins_later_the_node_must_not_take_part(node: Node, tmp_path: Path) -> None:
    assert node.journal.release_feeds(node.store.needed_from)
    node.journal.sync()
    kept = [node.store.path(index) for index in node.store.kept()]
    node.close()
    for path in kept:
        path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(SnapshotDamaged):
        start(tmp_path)
