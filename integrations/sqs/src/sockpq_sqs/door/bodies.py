"""Reads the body of a request: bounded in size, and counted in the memory account while it arrives."""

from __future__ import annotations

import hashlib
from base64 import b64decode
from binascii import Error as Base64Error

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestPayloadError

from sockpq_sqs.door.connection import Connection
from sockpq_sqs.door.limits import BODY_BYTES_MAX, KIB
from sockpq_sqs.door.memory import MemoryAccount
from sockpq_sqs.model.errors import SqsError

COUNTED_BYTES = 16 * KIB        # smaller bodies are not worth counting


class BodyLeft(SqsError):
    """The request body was not read to its end, so the connection cannot be reused."""


async def read_body(request: web.BaseRequest, connection: Connection, account: MemoryAccount) -> bytes:
    """Read the body. What is held for it stays in the account until the caller releases it. Raises SqsError."""
    announced = _announced(request)
    if announced == 0:
        return b""
    if announced > BODY_BYTES_MAX:
        raise too_large()
    if account.high and announced >= COUNTED_BYTES:
        raise BodyLeft("ServiceUnavailable", "Too much is being received; repeat the request later.", 503)
    if request.headers.get("Expect", "").lower() == "100-continue":
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0          # the answer is still to come
    parts: list[bytes] = []
    size = 0
    try:
        while data := await request.content.readany():
            parts.append(data)
            size += len(data)
            if size > BODY_BYTES_MAX:
                raise too_large()
            if size >= COUNTED_BYTES:
                account.hold(connection, size)
    except (RequestPayloadError, HttpProcessingError):
        raise BodyLeft("SerializationException", "The body is not in the encoding of its header.", 400,
                       "MalformedInput") from None
    return parts[0] if len(parts) == 1 else b"".join(parts)


def check_md5(request: web.BaseRequest, body: bytes) -> None:
    """Compare the body with the header Content-MD5, if there is one; raises SqsError."""
    given = request.headers.get("Content-MD5")
    if given is None:
        return
    try:
        digest = b64decode(given, validate=True)
    except (Base64Error, ValueError):
        digest = b""
    if len(digest) != hashlib.md5(usedforsecurity=False).digest_size:
        raise SqsError("InvalidDigest", "The Content-MD5 you specified was invalid.", 400)
    if hashlib.md5(body, usedforsecurity=False).digest() != digest:
        raise SqsError("BadDigest", "The Content-MD5 you specified did not match what we received.", 400)


def too_large() -> SqsError:
    """Return the error for a body beyond the limit."""
    return BodyLeft(
        "RequestEntityTooLarge", f"The body of a request has {BODY_BYTES_MAX} bytes at most.", 413)


def _announced(request: web.BaseRequest) -> int:
    """Return how many bytes are announced; as many as are allowed where that is not known (chunks)."""
    if not request.can_read_body:
        return 0
    length = request.content_length
    return BODY_BYTES_MAX if length is None else length
