"""Keeps the samples in a file of the data directory, to preserve them over a restart.

The file is a convenience: it is not synced, and one that is torn, damaged, or of another version is ignored. A thread
writes it, one course after the other, so the event loop never waits.
"""

from __future__ import annotations

import logging
import os
import zlib
from array import array
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sockpqd.gateway.samples.course import FigureSeries
from sockpqd.gateway.samples.ring import Ring

log = logging.getLogger("sockpqd")

MAGIC = b"sockpqd samples 1\n"
LENGTH_BYTES = 4


class StoredRing(Struct, frozen=True, array_like=True):
    """A ring as it is stored."""

    step_s: int
    rows: int
    newest: int
    values: bytes


class StoredCourse(Struct, frozen=True, array_like=True):
    """A course as it is stored, with the names of its fields."""

    name: str
    fields: list[str]
    last_s: int
    rings: list[StoredRing]
    first_s: int = 0        # missing in files of earlier versions


_encode = msgspec.msgpack.Encoder().encode
_decoder = msgspec.msgpack.Decoder(StoredCourse)


def save(path: Path, courses: Mapping[str, FigureSeries]) -> None:
    """Write the courses, by name. Raises OSError. May be called in a thread while rows are added."""
    packer, pieces = zlib.compressobj(1), []
    for name, course in courses.items():
        encoded = _encode(StoredCourse(name, [field.name for field in course.fields], course.last_s, [
            StoredRing(ring.step_s, ring.rows, ring.newest, ring.values.tobytes()) for ring in course.rings
        ], course.first_s))
        pieces.append(packer.compress(len(encoded).to_bytes(LENGTH_BYTES) + encoded))
    content = b"".join([*pieces, packer.flush()])       # ends with a checksum
    temporary = path.with_suffix(".new")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
        file.write(MAGIC + content)
    temporary.replace(path)


def load(path: Path) -> dict[str, StoredCourse]:
    """Return the courses in the file, by name; none if there is no file, or it cannot be read."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        log.info("the samples of the dashboard cannot be read: %s", error)
        return {}
    if not data.startswith(MAGIC):
        log.info("the samples of the dashboard are of another version: they begin again")
        return {}
    try:
        content, at, found = zlib.decompress(data[len(MAGIC):]), 0, {}
        while at < len(content):
            end = at + LENGTH_BYTES + int.from_bytes(content[at:at + LENGTH_BYTES])
            course = _decoder.decode(content[at + LENGTH_BYTES:end])
            found[course.name], at = course, end
    except (msgspec.MsgspecError, zlib.error) as error:
        log.info("the samples of the dashboard cannot be read (%s): they begin again", error)
        return {}
    return found


def fill(course: FigureSeries, stored: StoredCourse) -> bool:
    """Take the stored rows into the course. Returns False, and takes none, if it has other fields or steps."""
    if stored.fields != [field.name for field in course.fields] or len(stored.rings) != len(course.rings):
        return False
    rings = []
    for ring, one in zip(course.rings, stored.rings, strict=True):
        values = array("f")
        if (one.step_s, one.rows) != (ring.step_s, ring.rows) or len(one.values) != len(ring.values) * values.itemsize:
            return False
        values.frombytes(one.values)
        filled = Ring(one.step_s, one.rows, ring.width)
        filled.newest, filled.values = one.newest, values
        rings.append(filled)
    course.first_s, course.last_s, course.rings = stored.first_s or stored.last_s, stored.last_s, rings
    return True
