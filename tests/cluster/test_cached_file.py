"""The page cache of the disks in memory behaves as that of Linux does."""

from __future__ import annotations

import copy

from tests.cluster.helpers.cached_file import PAGE_BYTES, SECTOR_BYTES, CachedFile

OLD, NEW = b"old", b"new"


def failed_file() -> CachedFile:
    """Return a file whose old bytes are on the disk, and whose new ones are only shown."""
    file = CachedFile()
    file.write(OLD, 0)
    file.sync()
    file.write(NEW, 0)
    file.fail_sync()
    return file


def test_after_a_failed_sync_the_bytes_are_shown_until_they_are_dropped() -> None:
    file = failed_file()
    assert file.data == NEW
    file.sync()                     # succeeds, and writes nothing
    assert (file.data, file.on_disk()) == (NEW, OLD)
    file.drop_cache()
    assert (file.data, file.on_disk()) == (OLD, OLD)


def test_what_is_not_synced_is_not_dropped() -> None:
    file = CachedFile()
    file.write(OLD, 0)
    file.drop_cache()
    assert (file.data, file.on_disk()) == (OLD, bytes(len(OLD)))


def test_another_write_to_the_page_brings_all_of_it_to_the_disk() -> None:
    file = failed_file()
    file.write(b"more", PAGE_BYTES - 4)
    assert file.on_disk().startswith(OLD)
    file.sync()
    assert file.on_disk() == file.data == NEW + bytes(PAGE_BYTES - 7) + b"more"


def test_one_to_another_page_does_not() -> None:
    file = failed_file()
    file.write(b"more", PAGE_BYTES)
    file.sync()
    assert file.data == NEW + bytes(PAGE_BYTES - 3) + b"more"
    assert file.on_disk() == OLD + bytes(PAGE_BYTES - 3) + b"more"


def test_a_second_failure_leaves_what_was_there_before_the_first() -> None:
    file = failed_file()
    file.write(b"third", 0)
    file.fail_sync()
    assert (file.data, file.on_disk()) == (b"third", OLD + b"\0\0")


def test_sectors_of_a_failed_sync_may_reach_the_disk() -> None:
    file = CachedFile()
    reached = iter([False, True, False])
    file.write(b"x" * 3 * SECTOR_BYTES, 0)
    file.fail_sync(lambda: next(reached))
    file.drop_cache()
    assert file.data == bytes(SECTOR_BYTES) + b"x" * SECTOR_BYTES + bytes(SECTOR_BYTES)


def test_the_size_is_not_on_the_disk_either_before_something_else_is_written() -> None:
    file = failed_file()
    file.write(b"longer than before", 0)
    file.fail_sync()
    file.sync()
    assert file.synced_bytes == len(OLD)
    file.write(b"x", 30)
    file.sync()
    assert file.synced_bytes == 31


def test_a_copy_is_independent() -> None:
    file = failed_file()
    other = copy.deepcopy(file)
    file.drop_cache()
    assert (other.data, other.on_disk()) == (NEW, OLD)
