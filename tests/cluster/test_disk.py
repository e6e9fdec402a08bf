"""The real disk's own promises."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cluster.disk import IOV_MAX, Disk, TimedDisk


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
