"""No damaged snapshot is ever taken for a sound one."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from sockpqd.cluster.snapshots import snapshot_file
from sockpqd.cluster.snapshots.snapshot_file import SnapshotContents, SnapshotDamaged, SnapshotFile, SnapshotTooNew
from tests.cluster.helpers.faulty_disk import FaultyDisk

PATH = Path("/snapshots/snapshot")
SEED = int(os.environ.get("SOCKPQ_SEED", "20240611"))

NEWER = snapshot_file.VERSION_WITH_PAGES + 1


def chunks(rng: random.Random) -> Iterator[bytes]:
    for _ in range(rng.randrange(1, 40)):
        yield rng.choice((rng.randbytes(rng.randrange(3000)), bytes(rng.randrange(3000))))


def written(rng: random.Random) -> tuple[FaultyDisk, SnapshotContents, bytes]:
    disk = FaultyDisk()
    contents = SnapshotContents((rng.randbytes(rng.randrange(300)), 100, 7), (b"", 99, 6), ["n1", "n2", "n3"])
    stream = list(chunks(rng))
    snapshot_file.write(disk, PATH, contents, iter(stream))
    return disk, contents, b"".join(stream)


def test_what_was_written_is_read() -> None:
    for seed in range(20):
        disk, contents, stream = written(random.Random(seed))
        assert snapshot_file.verify(disk, PATH) == contents
        file = SnapshotFile(disk, PATH)
        assert b"".join(file.stream()) == stream
        file.close()
        assert disk.open_files == 0


def test_an_empty_stream_is_a_snapshot_too() -> None:
    disk = FaultyDisk()
    snapshot_file.write(disk, PATH, SnapshotContents((b"a", 2, 1), (b"b", 1, 0), []), iter(()))
    assert snapshot_file.verify(disk, PATH).last == (b"a", 2, 1)


def test_every_single_flipped_bit_is_detected() -> None:
    print(f"SOCKPQ_SEED={SEED}")
    rng = random.Random(SEED)
    flips = 0
    while flips < 2000:
        disk, _, _ = written(rng)
        data = disk.file(PATH)
        for _ in range(200):
            offset, bit = rng.randrange(len(data)), rng.randrange(8)
            data[offset] ^= 1 << bit
            with pytest.raises(SnapshotDamaged, match=f"snapshot {PATH} is damaged"):
                snapshot_file.verify(disk, PATH)
            data[offset] ^= 1 << bit
            flips += 1


def test_every_bit_of_beginning_and_end_is_checked() -> None:
    disk, _, _ = written(random.Random(1))
    data = disk.file(PATH)
    for position in (*range(8 * 100), *range(8 * len(data) - 8 * 40, 8 * len(data))):
        data[position // 8] ^= 1 << position % 8
        with pytest.raises(SnapshotDamaged):
            snapshot_file.verify(disk, PATH)
        data[position // 8] ^= 1 << position % 8


def test_every_length_but_the_right_one_is_refused() -> None:
    disk = FaultyDisk()
    snapshot_file.write(disk, PATH, SnapshotContents((b"a", 2, 1), (b"b", 1, 0), ["n1"]), iter((b"x" * 300,)))
    whole = bytes(disk.file(PATH))
    for length in range(len(whole)):
        disk.file(PATH)[:] = whole[:length]
        with pytest.raises(SnapshotDamaged):
            snapshot_file.verify(disk, PATH)
    disk.file(PATH)[:] = whole + b"\0"
    with pytest.raises(SnapshotDamaged):
        snapshot_file.verify(disk, PATH)
    assert disk.open_files == 0


def test_a_newer_format_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as newer:
        newer.setattr(snapshot_file, "VERSION", NEWER)
        disk, _, _ = written(random.Random(1))
    with pytest.raises(SnapshotTooNew, match="has format 3; this version of sockpqd reads formats up to 2"):
        snapshot_file.verify(disk, PATH)
