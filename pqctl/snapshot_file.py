"""Reads the self-describing parts of a file of `pqctl backup` without holding it in memory.

    magic       8 bytes     PQRAFT1 and a newline
    format      4 bytes     big endian
    frames                  each: length of its body (4 bytes, big endian), body (MessagePack); the first is the head
    checksum    32 bytes    BLAKE2b of everything before

It is the unchanged answer to SNAPSHOT. The contents of frames belong to the servers, except the head and the users.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from hashlib import blake2b
from typing import Annotated, Any, BinaryIO, NamedTuple

import msgspec

MAGIC = b"PQRAFT1\n"
CHECKSUM_BYTES = 32
HEAD_BYTES_MAX = 1 << 20
CHUNK_BYTES = 1 << 20
MS_MAX = 253_402_300_800_000        # the year 10000, in Unix time
_FIELD_INDEX, _FIELD_CLOCK, _FIELD_CLUSTER, _FIELD_LEVEL = 1, 4, 5, 18      # of the head, whose name is its field 0
_Count = Annotated[int, msgspec.Meta(ge=0, le=(1 << 63) - 1)]
_Time = Annotated[int, msgspec.Meta(ge=0, lt=MS_MAX)]
_Told = tuple[_Count, _Count, _Time, bytes]                                 # level, index, clock, cluster
_USERS = b"\x92\xa5users"       # how a frame with users begins: an array of two, the first of which is its name


class Damaged(Exception):
    """The file is not a snapshot, or was changed since; the message gives the evidence."""


class SnapshotUser(NamedTuple):
    """A user as stored in the cluster."""

    name: str
    rights: str
    key: bytes


class Contents(NamedTuple):
    """The contents of the head."""

    size: int                   # bytes of the file
    format: int
    cluster: str                # the identity of the cluster, hexadecimal; "" if it has none yet
    level: int                  # a cluster needs this feature level to take it
    applied: int                # the last entry of the log that is in it
    clock_s: float              # the replicated clock, Unix time
    checksum: str               # hexadecimal
    users: int                  # how many are in it


def verify(file: BinaryIO) -> Contents:
    """Read all of a file and check its form and checksum; raises Damaged and OSError."""
    size = os.fstat(file.fileno()).st_size
    if size < len(MAGIC) + 4 + 4 + CHECKSUM_BYTES:
        raise Damaged("it is too short for a snapshot")
    file.seek(0)
    digest = blake2b(digest_size=CHECKSUM_BYTES)

    def take(length: int) -> bytes:
        data = file.read(length)
        if len(data) < length:
            raise Damaged("it became shorter while it was read")
        digest.update(data)
        return data

    if take(len(MAGIC)) != MAGIC:
        raise Damaged("it does not begin like a snapshot")
    version = int.from_bytes(take(4), "big")
    length = int.from_bytes(take(4), "big")
    left = size - file.tell() - CHECKSUM_BYTES
    if length > min(left, HEAD_BYTES_MAX):
        raise Damaged("its head is damaged")
    head = take(length)
    left -= length
    while left:
        chunk = take(min(left, CHUNK_BYTES))
        left -= len(chunk)
    checksum = file.read(CHECKSUM_BYTES)
    if checksum != digest.digest():
        raise Damaged("its checksum is wrong: it is cut off, or was changed since it was written")
    contents = _contents(head, size, version, checksum)
    return contents._replace(users=sum(1 for _ in users_in(file)))


def users_in(file: BinaryIO) -> Iterator[SnapshotUser]:
    """Yield the users in a verified file; raises Damaged and OSError."""
    end = os.fstat(file.fileno()).st_size - CHECKSUM_BYTES
    place = len(MAGIC) + 4
    while place < end:
        file.seek(place)
        length = int.from_bytes(file.read(4), "big")
        if file.read(len(_USERS)) == _USERS:
            file.seek(place + 4)
            try:
                _, users = msgspec.msgpack.decode(file.read(length), type=tuple[str, list[SnapshotUser]])
            except (msgspec.MsgspecError, RecursionError) as error:
                raise Damaged("this version does not know the format of its users") from error
            yield from users
        place += 4 + length


def _contents(head: bytes, size: int, version: int, checksum: bytes) -> Contents:
    try:
        fields: list[Any] = msgspec.msgpack.decode(head)
        level = fields[_FIELD_LEVEL] if len(fields) > _FIELD_LEVEL else 1
        told = level, fields[_FIELD_INDEX], fields[_FIELD_CLOCK], fields[_FIELD_CLUSTER] or b""
        level, applied, clock_ms, cluster = msgspec.convert(told, _Told)
    except (msgspec.MsgspecError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise Damaged("this version does not know the format of its head") from error
    return Contents(size, version, cluster.hex(), level, applied, clock_ms / 1000, checksum.hex(), 0)
