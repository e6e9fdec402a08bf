"""Snapshots made by hand: any frames, with a right checksum."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any

import msgspec

from sockpqd.core.snapshot.write import CHECKSUM_BYTES, FORMAT, MAGIC


def forged(*frames: object, number: int = FORMAT) -> bytes:
    """Return a snapshot of these frames; bytes are taken as the body of a frame, anything else is encoded."""
    content = MAGIC + number.to_bytes(4, "big")
    for frame in frames:
        body = frame if isinstance(frame, bytes) else msgspec.msgpack.encode(frame)
        content += len(body).to_bytes(4, "big") + body
    return content + blake2b(content, digest_size=CHECKSUM_BYTES).digest()


def frames_of(snapshot: bytes) -> list[Any]:
    """Return the decoded frames of a snapshot."""
    content, found = snapshot[len(MAGIC) + 4 : -CHECKSUM_BYTES], []
    while content:
        size = int.from_bytes(content[:4], "big")
        found.append(msgspec.msgpack.decode(content[4 : 4 + size]))
        content = content[4 + size :]
    return found
