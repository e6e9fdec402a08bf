"""The real disk's own promises."""

from __future__ import annotations

import errno
import gc
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.storage.disk import IOV_MAX, Disk, TimedDisk, passes


def test_pieces_are_written_in_order_however_many(tmp_path: Path) -> None:
    disk = Disk()
    file = disk.create(tmp_path / "file")
    pieces = [b"%d," % number for number in range(3 * IOV_MAX + 5)]
    disk.write(file, pieces, 7)
    assert disk.read(file, 1 << 20, 0) == bytes(7) + b"".join(pieces)
    disk.close(file)


def test_a_write_that_the_system_cuts_short_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = os.pwrite
    monkeypatch.setattr(os, "pwritev", lambda file, pieces, offset: whole(file, b"".join(pieces)[:5], offset))
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: whole(file, data[:3], offset))
    disk = Disk()
    file = disk.create(tmp_path / "file")
    disk.write(file, [b"abcd", b"efgh", b"ijklm"], 2)
    assert disk.read(file, 100, 2) == b"abcdefghijklm"
    disk.close(file)


def test_a_read_that_the_system_cuts_short_is_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"abcdefghijklm")
    whole = os.pread
    monkeypatch.setattr(os, "pread", lambda file, length, offset: whole(file, min(length, 4), offset))
    disk = Disk()
    file = disk.open(tmp_path / "file")
    assert disk.read(file, 9, 1) == b"bcdefghij"
    assert disk.read(file, 100, 5) == b"fghijklm"
    disk.close(file)


def test_allocated_space_reads_as_zeros(tmp_path: Path) -> None:
    disk = Disk()
    file = disk.create(tmp_path / "file")
    disk.allocate(file, 10_000)
    assert disk.size(file) == 10_000
    assert disk.read(file, 10_000, 0) == bytes(10_000)
    disk.close(file)


def test_what_the_system_is_told_to_forget_is_still_on_the_disk(tmp_path: Path) -> None:
    disk = Disk()
    file = disk.create(tmp_path / "file")
    data = os.urandom(100_000)
    disk.write(file, [data], 300)
    disk.sync(file)
    disk.forget(file, len(data), 300)
    assert disk.read(file, len(data), 300) == data
    disk.close(file)


def test_a_lock_is_held_until_it_is_closed(tmp_path: Path) -> None:
    disk = Disk()
    held = disk.lock(tmp_path / "lock")
    assert held is not None
    assert disk.lock(tmp_path / "lock") is None
    disk.close(held)
    again = disk.lock(tmp_path / "lock")
    assert again is not None
    disk.close(again)


def test_a_timed_disk_counts_its_syncs(tmp_path: Path) -> None:
    disk = TimedDisk()
    file = disk.create(tmp_path / "file")
    disk.write(file, [b"x"], 0)
    disk.sync(file)
    disk.sync(file)
    disk.close(file)
    assert sum(disk.syncs.counts) == 2
    assert disk.syncs.total > 0


@pytest.fixture
def few_files() -> Iterator[Callable[[], None]]:
    """Call it: from then on this process can open no further file."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_next_descriptor(), limits[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def _next_descriptor() -> int:
    """One above those in use: below it none is left when the holes are filled."""
    gc.collect()        # or what other tests have left open is closed in the middle of this one
    fillers = [os.dup(0)]
    while fillers[-1] <= max(int(name) for name in os.listdir("/proc/self/fd")) - 1 and len(fillers) < 1000:
        fillers.append(os.dup(0))
    FILLERS.extend(fillers)
    return fillers[-1] + 1


FILLERS: list[int] = []


@pytest.fixture(autouse=True)
def _close_fillers() -> Iterator[None]:
    yield
    while FILLERS:
        os.close(FILLERS.pop())


def test_with_descriptors_at_hand_files_are_opened_when_there_are_no_others(
    tmp_path: Path, few_files: Callable[[], None],
) -> None:
    disk = Disk()
    disk.hold_descriptors(2)
    few_files()
    with pytest.raises(OSError, match="Too many open files"):
        os.open(tmp_path, os.O_RDONLY)
    for number in range(20):                # what is open for a moment gives its descriptor back
        disk.sync_directory(tmp_path)
        assert disk.names(tmp_path) == [f"{k:02}" for k in range(number)]
        disk.close(disk.create(tmp_path / f"{number:02}"))
    kept = [disk.create(tmp_path / "a"), disk.create(tmp_path / "b")]
    with pytest.raises(OSError, match="Too many open files"):
        disk.create(tmp_path / "c")
    for file in kept:
        disk.close(file)
    disk.close(disk.create(tmp_path / "c"))


def test_without_them_they_are_not(tmp_path: Path, few_files: Callable[[], None]) -> None:
    disk = Disk()
    few_files()
    with pytest.raises(OSError, match="Too many open files") as caught:
        disk.create(tmp_path / "a")
    assert passes(caught.value)


def test_what_is_not_in_the_page_cache_is_not_waited_for(tmp_path: Path) -> None:
    disk = Disk()
    file = disk.create(tmp_path / "file")
    disk.write(file, [b"abc" * 100_000], 0)
    assert disk.read_cached(file, 3000, 300) == b"abc" * 1000
    assert disk.read_cached(file, 10, 299_995) is None          # there is no end to wait for, but not all of it either
    disk.sync(file)
    disk.forget(file, 300_000, 0)
    assert disk.read_cached(file, 3000, 300) in (None, b"abc" * 1000)       # a file system may keep all in memory
    assert disk.read(file, 3000, 300) == b"abc" * 1000
    assert disk.read_cached(file, 3000, 300) == b"abc" * 1000
    disk.close(file)


def test_where_the_system_cannot_tell_the_disk_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: object) -> int:
        raise OSError(errno.EOPNOTSUPP, "Operation not supported")

    disk = Disk()
    file = disk.create(tmp_path / "file")
    disk.write(file, [b"abc"], 0)
    monkeypatch.setattr(os, "preadv", refuse)
    assert disk.read_cached(file, 3, 0) == b"abc"
    disk.close(file)
