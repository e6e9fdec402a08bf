"""A snapshot as a server sends it, made by hand."""

from __future__ import annotations

from hashlib import blake2b

import msgspec

CLUSTER = bytes.fromhex("0123456789abcdef0123456789abcdef")


def snapshot(level: int = 1, rest: bytes = b"rest", cluster: bytes | None = CLUSTER) -> bytes:
    """Return the bytes of a state of this feature level; `rest`: what follows its head."""
    head = msgspec.msgpack.encode(["head", 815, 3, None, 1_700_000_000_000, cluster, *[0] * 12, level])
    body = b"PQRAFT1\n" + (6).to_bytes(4, "big") + len(head).to_bytes(4, "big") + head + rest
    return body + blake2b(body, digest_size=32).digest()
