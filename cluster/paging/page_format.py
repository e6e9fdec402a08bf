"""The bytes of a page of jobs in its file, and those by which a snapshot names it.

    file `pages-<number>`: frames
    frame     := number of the page 8 | length of its data 4 | CRC of both and the data 4 | data        (little-endian)
    reference := file 4 | offset 4 | length of the frame 4 | number of the page 8 | its CRC 4           (big-endian)

References sort in the order of the files.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple
from zlib import crc32

from sockpqd.cluster.storage.disk import Disk
from sockpqd.core import PageLost

PREFIX = "pages-"
HEADER = struct.Struct("<QII")

_CHECKED = struct.Struct("<QI")
_REFERENCE = struct.Struct(">IIIQI")


class Reference(NamedTuple):
    """The place of a page, with a checksum to verify it."""

    segment: int
    offset: int
    length: int
    number: int
    crc: int

    def packed(self) -> bytes:
        return _REFERENCE.pack(*self)

    @staticmethod
    def unpacked(data: bytes) -> Reference:
        """The reference in these bytes."""
        return Reference(*_REFERENCE.unpack(data))


def path_of(directory: Path, segment: int) -> Path:
    """The file of this number."""
    return directory / f"{PREFIX}{segment:08}"


def header_of(number: int, data: bytes) -> tuple[bytes, int]:
    """The header of a page, and the CRC in it."""
    crc = crc32(data, crc32(_CHECKED.pack(number, len(data))))
    return HEADER.pack(number, len(data), crc), crc


def data_of(frame: bytes, reference: Reference) -> bytes | None:
    """The data in a frame; None: it has changed since it was written."""
    if len(frame) != reference.length:
        return None
    number, size, crc = HEADER.unpack_from(frame)
    data = frame[HEADER.size:]
    right = (number, size, crc) == (reference.number, len(data), reference.crc)
    return data if right and crc == crc32(data, crc32(_CHECKED.pack(number, size))) else None


AHEAD_BYTES = 32 << 20       # so much is asked for before it is read: a disk is several times as fast with that


class PageReader:
    """Reads pages by their references; fast in their order. It must be closed."""

    def __init__(self, disk: Disk, directory: Path) -> None:
        self._disk = disk
        self._directory = directory
        self._file: int | None = None
        self._segment = 0
        self._ahead = 0             # up to where the file will be in the page cache

    def read(self, packed: bytes) -> bytes:
        """The data of the page of a reference. Raises PageLost and OSError."""
        reference = Reference.unpacked(packed)
        if self._file is None or reference.segment != self._segment:
            self.close()
            self._file, self._segment, self._ahead = self._open(reference.segment), reference.segment, 0
        if reference.offset + AHEAD_BYTES // 2 > self._ahead:
            begin = max(self._ahead, reference.offset)
            self._disk.expect(self._file, AHEAD_BYTES, begin)
            self._ahead = begin + AHEAD_BYTES
        data = data_of(self._disk.read(self._file, reference.length, reference.offset), reference)
        if data is None:
            path = path_of(self._directory, reference.segment)
            raise PageLost(f"{path}: the page at {reference.offset} is not as it was written")
        return data

    def _open(self, segment: int) -> int:
        path = path_of(self._directory, segment)
        try:
            return self._disk.open(path)
        except FileNotFoundError:
            raise PageLost(f"{path} is missing") from None

    def close(self) -> None:
        """Close the file that is open."""
        if self._file is not None:
            self._disk.close(self._file)
            self._file = None


def verify(disk: Disk, directory: Path, references: Iterable[bytes]) -> None:
    """Read all of these pages. Raises PageLost and OSError."""
    with closing(PageReader(disk, directory)) as reader:
        for reference in sorted(references):
            reader.read(reference)
