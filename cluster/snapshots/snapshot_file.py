"""The format of a snapshot file, written once and checked as a whole before any of it is used.

    file     := head 16 | CRC of head and map 4 | map | the machine's stream | trailer 16
    head     := magic 8 | version 2 | 0 2 | length of the map 4
    map      := MessagePack {"last": [command, index, term], "prev": .., "members": [names],
                 "chain": hash, "checkpoints": saved, "pages": [numbers], "mirror": [index, hash, checkpoints]}
    trailer  := length of the stream 8 | CRC of all before it 4 | mark 4                          (all little-endian)

`pages` are the files with pages of jobs that the stream names, in a snapshot by reference (core/snapshot): they are as
much a part of it as its own file. It has VERSION_WITH_PAGES, and never leaves its node.

`mirror` is there in a replica: index, hash and newest checkpoints of its origin's chain.

`last` is the last log entry in the state and `prev` the one before it; the Raft library wants both in its log. Unknown
keys of the map are ignored. Any other change of the format raises VERSION by one; head and its CRC keep their places in
all versions.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgpack

from sockpqd.cluster import limits
from sockpqd.cluster.journal.log_index import Entry
from sockpqd.cluster.paging import page_format
from sockpqd.cluster.storage.disk import Disk
from sockpqd.cluster.storage.errors import SnapshotDamaged, SnapshotTooNew
from sockpqd.cluster.storage.state_hash import DIGEST_BYTES
from sockpqd.core import PageLost, references

VERSION = 1
VERSION_WITH_PAGES = 2
_MAGIC = b"SPQSNAP\0"
_MARK = 0xA5A5A5A5
_HEAD = struct.Struct("<8sHHI")
_CRC = struct.Struct("<I")
_TRAILER = struct.Struct("<QII")
_CHECKED_TRAILER = struct.Struct("<Q")
_READ_BYTES = 1 << 20


class SnapshotContents(NamedTuple):
    """The description of a snapshot, from its map."""

    last: Entry
    prev: Entry
    members: list[str]
    chain: bytes = bytes(DIGEST_BYTES)      # state_hash.py; unknown in the first snapshots of this format
    pages: tuple[int, ...] = ()             # numbers of files, of a snapshot by reference
    checkpoints: bytes = b""                # of the chain, before it (Chain.saved)
    mirror: tuple[int, bytes, bytes] | None = None      # of a replica: the same of the chain of its origin


def write(disk: Disk, path: Path, contents: SnapshotContents, chunks: Iterable[bytes]) -> None:
    """Write a snapshot to a new file and make its bytes, but not its name, durable. Raises OSError."""
    described: dict[str, Any] = {
        "last": contents.last, "prev": contents.prev, "members": contents.members, "chain": contents.chain}
    if contents.checkpoints:
        described["checkpoints"] = contents.checkpoints
    if contents.pages:
        described["pages"] = contents.pages
    if contents.mirror is not None:
        described["mirror"] = contents.mirror
    entries: bytes = msgpack.packb(described, use_bin_type=True)
    head = _HEAD.pack(_MAGIC, max(VERSION, VERSION_WITH_PAGES) if contents.pages else VERSION, 0, len(entries))
    pieces = [head, _CRC.pack(crc32(entries, crc32(head))), entries]
    file = disk.create(path)
    try:
        crc = 0
        for piece in pieces:
            crc = crc32(piece, crc)
        disk.write(file, pieces, 0)
        start = offset = synced = sum(map(len, pieces))
        for chunk in chunks:
            disk.write(file, [chunk], offset)
            crc = crc32(chunk, crc)
            offset += len(chunk)
            if offset - synced >= limits.SNAPSHOT_SYNC_BYTES:
                disk.sync(file)
                synced = offset
        length = offset - start
        disk.write(file, [_TRAILER.pack(length, crc32(_CHECKED_TRAILER.pack(length), crc), _MARK)], offset)
        disk.sync(file)
    finally:
        disk.close(file)


class SnapshotFile:
    """A snapshot opened for reading, even after its name is removed; it must be closed."""

    def __init__(self, disk: Disk, path: Path) -> None:
        """Open a snapshot. Raises OSError, SnapshotTooNew, and SnapshotDamaged if its head or length is wrong."""
        self.path = path
        self._disk = disk
        self._file = disk.open(path)
        try:
            self.size = disk.size(self._file)
            self.contents = self._read_contents()
        except BaseException:
            self.close()
            raise

    def _read_contents(self) -> SnapshotContents:
        start = self.read(0, _HEAD.size + _CRC.size)
        if len(start) < _HEAD.size + _CRC.size:
            raise self._damaged("it is too short")
        magic, version, _, length = _HEAD.unpack_from(start)
        entries = self.read(len(start), length) if length <= self.size else b""
        if magic != _MAGIC or crc32(entries, crc32(start[:_HEAD.size])) != _CRC.unpack_from(start, _HEAD.size)[0]:
            raise self._damaged("its beginning has changed since it was written")
        known = max(VERSION, VERSION_WITH_PAGES)
        if version > known:
            raise SnapshotTooNew(
                f"snapshot {self.path} has format {version}; this version of sockpqd reads formats up to {known}"
            )
        self._start = len(start) + length
        self._end = self.size - _TRAILER.size
        if self._end < self._start:
            raise self._damaged("it is cut off")
        described = msgpack.unpackb(entries)
        chain = described.get("chain", bytes(DIGEST_BYTES))
        pages, mirror = tuple(described.get("pages", ())), described.get("mirror")
        return SnapshotContents(
            tuple(described["last"]), tuple(described["prev"]), described["members"], chain, pages,
            described.get("checkpoints", b""), None if mirror is None else tuple(mirror),
        )

    def _damaged(self, what: str) -> SnapshotDamaged:
        return SnapshotDamaged(f"snapshot {self.path} is damaged: {what}")

    def read(self, offset: int, length: int) -> bytes:
        """Read raw bytes of the file; fewer at its end."""
        return self._disk.read(self._file, length, offset)

    def stream(self) -> Iterator[bytes]:
        """The machine's stream. Raises SnapshotDamaged at the end if any byte of the file has changed."""
        crc = crc32(self.read(0, self._start))
        for offset in range(self._start, self._end, _READ_BYTES):
            chunk = self.read(offset, min(_READ_BYTES, self._end - offset))
            crc = crc32(chunk, crc)
            yield chunk
        length = self._end - self._start
        expected = _TRAILER.pack(length, crc32(_CHECKED_TRAILER.pack(length), crc), _MARK)
        if self.read(self._end, _TRAILER.size) != expected:
            raise self._damaged("it has changed since it was written")

    def close(self) -> None:
        self._disk.close(self._file)


def verify(disk: Disk, path: Path, pages: Path | None = None) -> SnapshotContents:
    """Check every byte of a snapshot, and every page that it names; returns its description.

    `pages`: the directory of the pages; None: the snapshot must not name pages. Raises the errors of SnapshotFile.
    """
    file = SnapshotFile(disk, path)
    try:
        if not file.contents.pages:
            for _ in file.stream():
                pass
        elif pages is None:
            raise SnapshotDamaged(f"snapshot {path} names pages of jobs of another node")
        else:
            page_format.verify(disk, pages, list(references(file.stream())))
        return file.contents
    except PageLost as error:
        raise SnapshotDamaged(f"snapshot {path} is damaged: {error}") from None
    finally:
        file.close()
