"""Snapshots made by hand: any frames, with a right checksum."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

from sockpqd.core.snapshot.write import CHECKSUM_BYTES, FORMAT, MAGIC


def forged(*frames: object, number: int = FORMAT) -> bytes:
    """A snapshot of these frames; bytes are taken as the body of a frame, anything else is encoded."""
    content = MAGIC + number.to_bytes(4, "big")
    for frame in frames:
        body = frame if isinstance(frame, bytes) else msgspec.msgpack.encode(frame)
        content += len(body).to_bytes(4, "big") + body
    return content + blake2b(content, digest_size=CHECKSUM_BYTES).digest()
