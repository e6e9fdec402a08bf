"""Damage is found while a node runs, and what is in memory is written again."""

from __future__ import annotations

import logging
import mmap
import os
import random
from pathlib import Path

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.damage.scrubber import Finding, PacedDisk, Scrubber, examine, files_to_read
from sockpqd.cluster.journal.journal import Journal
from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import Put
from tests.cluster.helpers.small_cluster import SmallCluster, SmallNode
from tests.waiting import until


def findings(node: SmallNode) -> list[Finding]:
    store = node.up.store
    paths = [store.path(index) for index in store.kept()]
    found = [examine(node.disk, file) for file in files_to_read(node.up.journal.segments, paths)]
    return [finding for finding in found if finding is not None]


def put(world: SmallCluster, count: int) -> None:
    for number in range(count):
        world.leader().propose(Put("q", 0, b"job %d" % number))
        world.run(0.05)


@pytest.fixture
def world() -> SmallCluster:
    """Three nodes with two snapshots each, and a journal after them."""
    world = SmallCluster(3)
    world.leader()
    for _ in range(2):
        put(world, 5)
        for node in world:
            node.up.replica.compact()
        put(world, 5)
    assert all(len(node.up.store.kept()) == 2 for node in world)
    return world


def test_nothing_is_found_where_nothing_is_wrong(world: SmallCluster) -> None:
    assert not any(findings(node) for node in world)


def test_every_flipped_bit_of_what_is_written_is_found(world: SmallCluster) -> None:
    node, rng = world["n2"], random.Random(1)
    segments, store = node.up.journal.segments, node.up.store
    places = [(segments.path(number), end) for number, end, _ in segments.written()]
    places += [(store.path(index), len(node.disk.file(store.path(index)))) for index in store.kept()]
    for path, end in places:
        for _ in range(100):
            data, place, bit = node.disk.file(path), rng.randrange(end), 1 << rng.randrange(8)
            data[place] ^= bit
            (finding,) = findings(node)
            assert finding.path == path
            data[place] ^= bit


@pytest.mark.parametrize("of_journal", [True, False])
def test_what_is_damaged_is_written_anew_and_removed(
    world: SmallCluster, *, of_journal: bool, caplog: pytest.LogCaptureFixture,
) -> None:
    node = world["n3"]
    journal, store = node.up.journal, node.up.store
    path = journal.segments.path(journal.segments.active) if of_journal else store.path(store.kept()[-1])
    node.disk.file(path)[100] ^= 1
    (finding,) = findings(node)
    with caplog.at_level(logging.INFO):
        node.up.repair.begin(finding)
        for _ in range(6):
            put(world, 2)
            world.run(limits.COMPACTION_REST_S)
    assert "Check its disk and memory" in caplog.text
    assert "the damaged files are removed" in caplog.text
    assert findings(node) == []
    assert node.up.repair.found == 1
    before = node.up.journal.last_index
    world.kill("n3")
    world.start("n3")                       # finds nothing wrong
    world.run(2.0)
    assert node.up.journal.last_index >= before


def test_a_damaged_file_that_is_kept_only_for_copies_elsewhere_is_removed() -> None:
    world = SmallCluster(1, feed_keep_bytes=1 << 30)
    node = world.leader()
    for _ in range(4):
        for _ in range(12):
            world.put_now(bytes([1]) * 100_000)
        node.up.replica.compact()
        world.run(1)
    journal = node.up.journal
    assert journal.segments.oldest == 1
    assert journal.oldest_index < journal.first_index
    node.disk.file(journal.segments.path(1))[100] ^= 1
    (finding,) = findings(node)
    node.up.repair.begin(finding)
    for _ in range(4):
        put(world, 2)
        world.run(limits.COMPACTION_REST_S)
    assert journal.segments.oldest > 1
    assert findings(node) == []


def test_the_thread_reads_real_files_and_tells_of_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SCRUB_PAUSE_S", 0.01)
    monkeypatch.setattr(limits, "SCRUB_BYTES_PER_S", 1 << 30)
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 16)
    for index in range(1, 200):
        journal.add(b"%d" % index * 500, index, 1)
        journal.sync()
    told: list[Finding] = []
    scrubber = Scrubber(lambda: files_to_read(journal.segments, []), told.append)
    scrubber.start()
    until(lambda: scrubber.disk.read_bytes > 1 << 20)
    assert not told                         # several times, also beyond the ends of what is written
    path = journal.segments.path(2)
    with path.open("r+b") as file:
        file.seek(20_000)
        file.write(b"x")
    until(lambda: told)
    assert {(finding.path, finding.segment) for finding in told} == {(path, 2)}
    scrubber.stop()
    journal.close()


def test_a_file_that_was_removed_meanwhile_is_not_damaged(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path, Disk(), segment_bytes=1 << 16)
    (file,) = files_to_read(journal.segments, [])
    journal.close()
    file.path.unlink()
    assert examine(Disk(), file) is None


def test_it_drops_whole_pages_from_the_cache_before_it_reads_a_part_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    dropped: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, offset, length, advice: dropped.append((offset, length)))
    path = tmp_path / "file"
    path.write_bytes(bytes(5 * mmap.PAGESIZE))
    disk = PacedDisk()
    file = disk.open(path)
    for offset, length in ((512, 1024), (mmap.PAGESIZE - 1, 2), (0, mmap.PAGESIZE), (mmap.PAGESIZE, 2 * mmap.PAGESIZE)):
        assert len(disk.read(file, length, offset)) == length
    disk.close(file)
    page = mmap.PAGESIZE
    assert dropped == [(0, page), (0, 2 * page), (0, page), (page, 2 * page)]
