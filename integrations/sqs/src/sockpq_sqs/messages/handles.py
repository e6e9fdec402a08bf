"""Receipt handles: the id of a hand-out, the number of its job, and its time, signed with a key of the cluster.

A handle is good at every front end, and for its own queue only.
"""

from __future__ import annotations

import hmac
import struct
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import NamedTuple

from sockpq_sqs.model.errors import SqsError

FORMAT = struct.Struct(">QQQ")
SIGNATURE_BYTES = 12
TEXT_BYTES = 4 * (FORMAT.size + SIGNATURE_BYTES) // 3


class Handle(NamedTuple):
    """One hand-out of a message."""

    id: int
    number: int
    time_ms: int


def encode(handle: Handle, server_name: str, key: bytes) -> str:
    """Return the receipt handle for a queue, by its name in the cluster."""
    data = FORMAT.pack(*handle)
    return urlsafe_b64encode(data + _signature(data, server_name, key)).decode()


def decode(text: str, server_name: str, key: bytes) -> Handle:
    """Return the hand-out of a receipt handle. Raises SqsError."""
    if len(text) == TEXT_BYTES and text.isascii():
        try:
            found = urlsafe_b64decode(text)
        except ValueError:
            raise _invalid(text) from None
        data, signature = found[: FORMAT.size], found[FORMAT.size:]
        if hmac.compare_digest(signature, _signature(data, server_name, key)):
            return Handle(*FORMAT.unpack(data))
    raise _invalid(text)


def _signature(data: bytes, server_name: str, key: bytes) -> bytes:
    return hmac.digest(key, server_name.encode() + b"\0" + data, "sha256")[:SIGNATURE_BYTES]


def _invalid(text: str) -> SqsError:
    return SqsError(
        "ReceiptHandleIsInvalid", f'The input receipt handle "{text[:300]}" is not a valid receipt handle.',
    )
