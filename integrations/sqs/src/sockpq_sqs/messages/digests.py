"""Digests of bodies and attributes, which SDKs compare."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import md5

from sockpq_sqs.model.shapes import AttributeValue


def body_digest(body: bytes) -> str:
    """Return the MD5 of a body in hexadecimal."""
    return md5(body, usedforsecurity=False).hexdigest()


def attributes_digest(attributes: Mapping[str, AttributeValue]) -> str | None:
    """Return the MD5 of attributes in hexadecimal, as Amazon's developer guide defines it; None if there are none.

    By name: the length and the bytes of the name and of the type, a byte for text (1) or bytes (2), then the value.
    """
    if not attributes:
        return None
    parts = []
    for name in sorted(attributes):
        value = attributes[name]
        parts += [_counted(name.encode()), _counted(value.data_type.encode())]
        if value.binary_value is not None:
            parts += [b"\x02", _counted(value.binary_value)]
        else:
            parts += [b"\x01", _counted((value.string_value or "").encode())]
    return md5(b"".join(parts), usedforsecurity=False).hexdigest()


def _counted(data: bytes) -> bytes:
    return len(data).to_bytes(4, "big") + data
