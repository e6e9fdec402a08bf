"""The files of pages: what was put is read, room is given back, and damage is found."""

from __future__ import annotations

import errno
import logging
import os
from itertools import pairwise
from pathlib import Path
from random import Random

import pytest

from sockpqd.cluster import limits
from sockpqd.cluster.paging import file_space, page_format
from sockpqd.cluster.paging.file_space import FileSpace
from sockpqd.cluster.paging.page_files import PageFiles
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.fork import ForkedTask
from sockpqd.core import PageLost
from tests.cluster.helpers.faulty_disk import FaultyDisk
from tests.waiting import until

FOLDER = Path("/pages")
FULL = OSError(errno.ENOSPC, "No space left on device")


@pytest.fixture
def files(disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch) -> PageFiles:
    monkeypatch.setattr(file_space, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(file_space, "WRITE_BYTES", 100)
    return PageFiles(FOLDER, disk)


@pytest.fixture
def space(files: PageFiles) -> FileSpace:
    return files.space()


def put(space: FileSpace, data: bytes) -> int:
    number = space.put(data)
    assert number is not None
    return number


def tidied(files: PageFiles) -> None:
    """Tidy until there is nothing more to do."""
    for _ in range(10_000):
        if not files.tidy():
            return
    raise AssertionError("tidying does not end")


@pytest.mark.parametrize("seed", range(20))
def test_every_page_is_read_as_it_was_put_while_others_come_and_go(
    seed: int, disk: FaultyDisk, files: PageFiles, space: FileSpace,
) -> None:
    random = Random(seed)
    kept: dict[int, bytes] = {}
    for _ in range(1500):
        if random.random() < 0.55:
            data = random.randbytes(random.choice([0, 10, 60, 60, 60, 300, 2000]))
            kept[put(space, data)] = data
        elif kept:
            number = random.choice(list(kept) if random.random() < 0.3 else list(kept)[:3])
            assert space.get(number) == kept.pop(number)
            space.free(number)
        if random.random() < 0.3:
            files.tidy()
        if kept and random.random() < 0.2:
            number = random.choice(list(kept))
            space.expect(number)
            assert space.get(number) == kept[number]
    tidied(files)
    assert {number: space.get(number) for number in kept} == kept
    live = sum(len(data) + page_format.HEADER.size for data in kept.values())
    used = sum(len(disk.file(path)) for path in disk.paths(FOLDER))
    assert used == files.bytes_total
    assert used * file_space.SPARSE_PERCENT / 100 <= live + 3000
    assert disk.open_files == len(disk.paths(FOLDER)) == len(files.segments)
    for number in kept:
        space.free(number)
    assert len(files.segments) <= 1


def test_what_the_disk_is_waited_for_is_counted(
    disk: FaultyDisk, files: PageFiles, space: FileSpace, monkeypatch: pytest.MonkeyPatch,
) -> None:
    numbers = [put(space, bytes(60)) for _ in range(4)]
    assert space.get(numbers[3]) == bytes(60)           # still in the buffer
    space.expect(numbers[3])
    assert (files.misses, files.expected, sum(files.reads.counts)) == (0, 0, 0)
    space.expect(numbers[0])
    assert space.get(numbers[0]) == bytes(60)
    assert (files.misses, files.expected, sum(files.reads.counts)) == (0, 1, 1)
    monkeypatch.setattr(disk, "read_cached", lambda file, length, offset: None)
    assert space.get(numbers[1]) == bytes(60)
    assert (files.misses, files.expected, sum(files.reads.counts)) == (1, 1, 2)


def test_files_that_are_given_up_are_counted(files: PageFiles, space: FileSpace) -> None:
    numbers = [put(space, bytes(60)) for _ in range(100)]
    each = 60 + page_format.HEADER.size
    assert (files.live_bytes, files.rewriting, files.moved) == (100 * each, 0, 0)
    for number in numbers[1:]:
        space.free(number)
    assert (files.live_bytes, files.rewriting, files.moved) == (each, 1, 0)
    tidied(files)
    assert (files.live_bytes, files.rewriting, files.moved) == (each, 0, 1)


def test_one_old_page_does_not_hold_a_whole_file(files: PageFiles, space: FileSpace, disk: FaultyDisk) -> None:
    old = put(space, b"old" * 20)
    others = [put(space, bytes(60)) for _ in range(100)]
    first = disk.paths(FOLDER)[0]
    for number in others:
        space.free(number)
    assert first in disk.paths(FOLDER)
    tidied(files)
    assert first not in disk.paths(FOLDER)
    assert space.get(old) == b"old" * 20


def test_a_file_without_a_live_page_goes_at_once_also_the_one_that_is_written(
    files: PageFiles, space: FileSpace, disk: FaultyDisk,
) -> None:
    numbers = [put(space, bytes(60)) for _ in range(5)]
    assert (len(disk.paths(FOLDER)), len(files.segments)) == (1, 1)
    for number in numbers:
        space.free(number)
    assert (disk.paths(FOLDER), files.segments, files.bytes_total, disk.open_files) == ([], {}, 0, 0)
    again = put(space, b"again" * 50)
    assert space.get(again) == b"again" * 50


def test_pages_that_die_before_they_are_written_cost_no_file(
    files: PageFiles, space: FileSpace, disk: FaultyDisk,
) -> None:
    for _ in range(1000):
        space.free(put(space, bytes(60)))
    assert disk.paths(FOLDER) == [FOLDER / "pages-00000001"]
    assert (len(disk.file(disk.paths(FOLDER)[0])), files.bytes_total) == (0, 0)
    kept = put(space, b"kept" * 10)
    space.flush()
    assert space.get(kept) == b"kept" * 10


def half_dead(space: FileSpace, *, files: int) -> dict[int, bytes]:
    """Return as many files of which every other page is dead, as in the one that is being written."""
    pages = {put(space, bytes([value]) * 60): bytes([value]) * 60 for value in range(13 * files)}
    for number in list(pages)[::2]:
        space.free(number)
        del pages[number]
    return pages


def test_when_room_is_short_files_of_which_a_good_part_is_dead_are_given_up(
    files: PageFiles, space: FileSpace, disk: FaultyDisk,
) -> None:
    pages = half_dead(space, files=4)
    before = files.bytes_total
    assert not files.tidy()             # as long as there is room
    files.make_room()
    tidied(files)
    space.flush()
    assert files.bytes_total < before * 3 / 4
    assert files.bytes_total == sum(len(disk.file(path)) for path in disk.paths(FOLDER))
    assert {number: space.get(number) for number in pages} == pages
    moved = files.moved
    files.make_room()
    tidied(files)
    assert files.moved == moved         # nothing is moved that brings nothing


def test_files_are_given_up_only_as_far_as_there_is_room_for_what_is_alive(
    files: PageFiles, space: FileSpace,
) -> None:
    pages = half_dead(space, files=4)
    files.free_bytes = files.room_bytes = 300
    files.make_room()
    assert files.rewriting == 0
    files.free_bytes = 600
    files.make_room()
    assert files.rewriting == 1
    files.free_bytes = 300              # somebody else was faster
    assert not files.tidy()
    files.free_bytes = 600
    tidied(files)
    assert files.moved > 0
    assert {number: space.get(number) for number in pages} == pages


def test_jobs_leave_memory_only_as_far_as_there_is_room(files: PageFiles, space: FileSpace) -> None:
    files.room_bytes = 1000
    numbers = []
    while (number := space.put(bytes(60))) is not None:
        numbers.append(number)
    assert 900 <= files.written_bytes + len(space._buffer) <= 1000 + page_format.HEADER.size
    for number in numbers[:-2]:
        space.free(number)
    files.room_bytes = 1000
    assert space.put(bytes(60)) is not None


def test_where_there_is_little_room_the_files_are_small(
    files: PageFiles, space: FileSpace, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_space, "SEGMENT_BYTES", 10_000)
    monkeypatch.setattr(file_space, "SEGMENT_BYTES_MIN", 500)
    for room_bytes, largest in ((1 << 30, 10_000), (32_000, 4000), (2000, 500)):
        before = set(disk.paths(FOLDER))
        while len(set(disk.paths(FOLDER)) - before) < 3:
            files.room_bytes = room_bytes
            put(space, bytes(60))
        full = sorted(set(disk.paths(FOLDER)) - before)[1]
        assert largest - 200 < len(disk.file(full)) <= largest


@pytest.mark.parametrize("damage", ["flip", "cut", "swap"])
def test_a_page_that_is_not_as_it_was_written_is_lost(
    damage: str, files: PageFiles, space: FileSpace, disk: FaultyDisk,
) -> None:
    numbers = [put(space, bytes([value]) * 60) for value in range(6)]
    data = disk.file(disk.paths(FOLDER)[0])
    frame = page_format.HEADER.size + 60
    if damage == "flip":
        data[frame + 30] ^= 4
    elif damage == "cut":
        del data[frame + 30:]
    else:
        data[frame:2 * frame], data[:frame] = data[:frame], data[frame:2 * frame]
    with pytest.raises(PageLost, match=r"pages-00000001: .* Start it again"):
        space.get(numbers[1])
    assert files.lost is not None


def test_what_is_found_while_pages_are_moved_is_a_lost_page(
    files: PageFiles, space: FileSpace, disk: FaultyDisk,
) -> None:
    numbers = [put(space, bytes(60)) for _ in range(20)]
    del disk.file(disk.paths(FOLDER)[0])[page_format.HEADER.size + 70:]
    for number in numbers[:-8]:
        space.free(number)
    with pytest.raises(PageLost, match=r"pages-00000001: .* Start it again"):
        tidied(files)


def test_a_damaged_header_of_a_page_that_nobody_needs_does_no_harm(
    files: PageFiles, space: FileSpace, disk: FaultyDisk,
) -> None:
    numbers = [put(space, bytes([value]) * 60) for value in range(20)]
    first = disk.paths(FOLDER)[0]
    disk.file(first)[page_format.HEADER.size + 60 + 11] ^= 0x40         # of the second page: a gigabyte more
    for number in numbers[2:10]:
        space.free(number)
    space.free(numbers[0])
    space.free(numbers[1])
    left = [number for number in numbers if number in space._places]
    tidied(files)
    assert first not in disk.paths(FOLDER)
    assert [space.get(number) for number in left] == [bytes([numbers.index(number)]) * 60 for number in left]


@pytest.mark.parametrize("seed", range(5))
def test_no_flipped_bit_goes_unnoticed(seed: int, space: FileSpace, disk: FaultyDisk) -> None:
    random = Random(seed)
    number = put(space, random.randbytes(90))
    put(space, b"behind")
    data = disk.file(disk.paths(FOLDER)[0])
    for bit in range(8 * (page_format.HEADER.size + 90)):
        data[bit // 8] ^= 1 << bit % 8
        with pytest.raises(PageLost):
            space.get(number)
        data[bit // 8] ^= 1 << bit % 8
    assert len(space.get(number)) == 90


def test_a_page_that_the_disk_does_not_give_is_lost(
    space: FileSpace, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch,
) -> None:
    number = put(space, bytes(200))
    put(space, bytes(200))

    def fails(file: int, length: int, offset: int) -> bytes:
        raise OSError(errno.EIO, "Input/output error")
    monkeypatch.setattr(disk, "read", fails)
    with pytest.raises(PageLost, match="Input/output error"):
        space.get(number)


def test_a_disk_that_is_full_from_the_start_is_told_too(
    files: PageFiles, space: FileSpace, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fails(directory: Path) -> None:
        raise FULL
    with monkeypatch.context() as patch:
        patch.setattr(disk, "make_directory", fails)
        assert space.put(b"1") is None
    put(space, b"1")


@pytest.mark.parametrize("operation", ["write", "create"])
def test_a_full_disk_loses_nothing_and_is_told_once(
    operation: str, files: PageFiles, space: FileSpace, disk: FaultyDisk, caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    numbers = {put(space, bytes([value]) * 40): bytes([value]) * 40 for value in range(20)}
    disk.fail[operation] = FULL
    refused = 0
    for _ in range(100):
        number = space.put(b"more" * 10)
        refused += number is None
        if number is not None:
            numbers[number] = b"more" * 10
    assert refused > 50
    assert {number: space.get(number) for number in numbers} == numbers
    del disk.fail[operation]
    for _ in range(50):
        numbers[put(space, b"again" * 10)] = b"again" * 10
    assert {number: space.get(number) for number in numbers} == numbers
    assert [record.levelname for record in caplog.records] == ["WARNING", "INFO"]


def test_a_disk_that_fails_otherwise_is_an_error(space: FileSpace, disk: FaultyDisk) -> None:
    put(space, bytes(200))
    disk.fail["write"] = OSError(errno.EIO, "Input/output error")
    with pytest.raises(OSError, match=f"Input/output error: '{FOLDER}'"):
        put(space, bytes(200))


def test_while_halted_nothing_is_written(files: PageFiles, space: FileSpace) -> None:
    put(space, b"1")
    files.halted = True
    assert space.put(b"2") is None
    assert not files.tidy()
    files.halted = False
    put(space, b"2")


def test_there_is_a_limit_of_files(
    files: PageFiles, space: FileSpace, disk: FaultyDisk, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "PAGE_FILES_MAX", 3)
    while space.put(bytes(500)) is not None:
        assert len(disk.paths(FOLDER)) <= 3
    assert len(disk.paths(FOLDER)) == 3


def test_what_an_earlier_process_left_is_removed(space: FileSpace, disk: FaultyDisk) -> None:
    put(space, bytes(2000))
    disk.close(disk.create(FOLDER / "other"))
    disk.restart()
    files = PageFiles(FOLDER, disk)
    files.begin({})
    files.settle()
    assert disk.names(FOLDER) == ["other"]


def test_a_dropped_space_leaves_nothing(files: PageFiles, disk: FaultyDisk) -> None:
    spaces = [files.space(), files.space()]
    numbers = [[put(space, bytes([value]) * 300) for value in range(20)] for space in spaces]
    spaces[0].drop()
    assert [spaces[1].get(number) for number in numbers[1]] == [bytes([value]) * 300 for value in range(20)]
    spaces[1].drop()
    assert disk.names(FOLDER) == []
    assert disk.open_files == 0
    assert files.bytes_total == 0
    assert not files.tidy()


def wait_until_removed(folder: Path) -> None:
    """Wait for the thread in which files are removed."""
    until(lambda: not list(folder.iterdir()))


def test_a_forked_child_reads_pages_of_files_that_are_removed_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_space, "SEGMENT_BYTES", 1000)
    monkeypatch.setattr(file_space, "WRITE_BYTES", 100)
    files = PageFiles(tmp_path / "pages", Disk())
    space = files.space()
    numbers = [put(space, bytes([value]) * 300) for value in range(20)]
    gate, release = os.pipe()
    os.set_inheritable(gate, True)

    def work() -> None:
        assert os.read(gate, 1) == b"!"
        assert [space.get(number) for number in numbers] == [bytes([value]) * 300 for value in range(20)]
    try:
        child = ForkedTask(work, [*files.descriptors(), gate])
        for number in numbers:
            space.free(number)
        space.drop()
        wait_until_removed(tmp_path / "pages")
        os.write(release, b"!")
        while child.poll() is None:
            os.sched_yield()
        assert (child.poll(), child.error) == (0, "")
    finally:
        os.close(gate)
        os.close(release)


class HintedDisk(Disk):
    """Records what the system was advised to do early."""

    def __init__(self) -> None:
        super().__init__()
        self.begun: list[tuple[int, int]] = []
        self.expected: list[tuple[int, int]] = []

    def begin_sync(self, file: int, length: int, offset: int) -> None:
        self.begun.append((offset, offset + length))
        super().begin_sync(file, length, offset)

    def expect(self, file: int, length: int, offset: int) -> None:
        self.expected.append((offset, offset + length))
        super().expect(file, length, offset)


def test_a_real_disk_writes_pages_early_reads_ahead_and_removes_files_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(file_space, "WRITE_BYTES", 1000)
    monkeypatch.setattr(page_format, "AHEAD_BYTES", 4000)
    disk = HintedDisk()
    files = PageFiles(tmp_path, disk)
    space = files.space()
    numbers = [put(space, bytes([number]) * 200) for number in range(100)]
    space.flush()
    assert disk.begun[0][0] == 0
    assert all(one[1] == other[0] for one, other in pairwise(disk.begun))
    assert disk.begun[-1][1] == files.bytes_total > 20_000
    references = [space.reference(number) for number in numbers]
    page_format.verify(disk, tmp_path, references)
    assert disk.expected[0] == (0, 4000)
    assert all(one[1] == other[0] for one, other in pairwise(disk.expected))
    assert 5 <= len(disk.expected) <= 6
    space.drop()
    wait_until_removed(tmp_path)
