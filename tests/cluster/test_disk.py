"""The real disk's own promises."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import gc
import mmap
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from sockpqd.cluster.storage import page_cache
from sockpqd.cluster.storage.disk import IOV_MAX, Disk, NamesNotSynced, SyncFailed, TimedDisk, passes


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


@pytest.fixture
def dropped(tmp_path: Path) -> Path:
    """Return a file whose pages can be dropped from the cache; skips on a file system in memory."""
    path = tmp_path / "file"
    path.write_bytes(os.urandom(100_000))
    with path.open("rb") as file:
        os.fdatasync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        if page_cache.resident(file.fileno()):
            pytest.skip(f"{tmp_path} is in memory")
    return path


def test_what_is_trusted_comes_from_the_disk(dropped: Path) -> None:
    data = dropped.read_bytes()[:-5] + b"dirty"
    dropped.write_bytes(data)                       # is in the cache only, and must be written before it is dropped
    Disk().trust(dropped.parent, [dropped.name])
    with dropped.open("rb") as file:
        assert not page_cache.resident(file.fileno())
        assert file.read() == data
        assert page_cache.resident(file.fileno())


def test_also_where_another_program_keeps_it_in_the_cache(dropped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = dropped.read_bytes()
    with dropped.open("r+b") as file, mmap.mmap(file.fileno(), 0) as mapped:
        assert mapped[0] == data[0]
        reads = DirectReads(monkeypatch, data[:5000] + b"other" + data[5005:])
        Disk().trust(dropped.parent, [dropped.name])
        assert reads.count
        assert page_cache.resident(file.fileno())
        assert dropped.read_bytes() == data[:5000] + b"other" + data[5005:]


def test_also_where_nobody_may_ask_what_is_in_the_cache(dropped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A filter of system calls refuses mincore, as systemd's @system-service does."""
    data = dropped.read_bytes()
    reads = DirectReads(monkeypatch, data[:5000] + b"other" + data[5005:])

    class Filtered:
        def mincore(self, *_: object) -> int:
            ctypes.set_errno(errno.EPERM)
            return -1

    monkeypatch.setattr(page_cache, "_libc", Filtered())
    Disk().trust(dropped.parent, [dropped.name])
    assert reads.count
    assert dropped.read_bytes() == data[:5000] + b"other" + data[5005:]


class DirectReads:
    """Reads past the cache that find these bytes."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, data: bytes) -> None:
        self.count = 0
        self._data = data
        monkeypatch.setattr(os, "preadv", self._read)

    def _read(self, file: int, buffers: list[mmap.mmap], offset: int) -> int:
        assert fcntl.fcntl(file, fcntl.F_GETFL) & os.O_DIRECT
        self.count += 1
        found = self._data[offset:offset + len(buffers[0])]
        buffers[0][:len(found)] = found
        return len(found)


def test_where_no_read_goes_past_the_cache_it_is_believed(dropped: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        if flags & os.O_DIRECT:
            raise OSError(errno.EINVAL, "Invalid argument")
        return opened(path, flags)

    data, opened = dropped.read_bytes(), os.open
    with dropped.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert mapped[0] == data[0]
        monkeypatch.setattr(os, "open", refuse)
        page_cache.drop(file.fileno())
    assert dropped.read_bytes() == data


def test_an_empty_file_is_not_in_the_cache(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    Disk().trust(tmp_path, ["file"])


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC, errno.EDQUOT])
def test_a_failed_sync_is_none_that_passes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fail(file: int) -> None:
        raise OSError(number, os.strerror(number))

    disk = Disk()
    file = disk.create(tmp_path / "file")
    with monkeypatch.context() as patched:
        patched.setattr(os, "fdatasync", fail)
        syncs: list[Callable[[], object]] = [
            lambda: disk.sync(file), lambda: disk.sync_in_background(file).result(),
            lambda: disk.prepare_in_background(file, 10, tmp_path).result(), lambda: disk.trust(tmp_path, ["file"]),
        ]
        for sync in syncs:
            with pytest.raises(SyncFailed, match=os.strerror(number)) as caught:
                sync()
            assert not passes(caught.value)
    monkeypatch.setattr(os, "fsync", fail)
    for sync in (lambda: disk.prepare_in_background(file, 10, tmp_path).result(), lambda: disk.trust(tmp_path, [])):
        with pytest.raises(NamesNotSynced, match=os.strerror(number)) as caught:
            sync()
        assert not passes(caught.value)
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
    """Let this process open no further file from then on."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (_next_descriptor(), limits[1]))
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def _next_descriptor() -> int:
    """Return one above those in use: below it none is left when the holes are filled."""
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
