"""Reads the fields of a form from the body of a request, in short portions so as not to block the event loop."""

from __future__ import annotations

import asyncio
from urllib.parse import unquote_to_bytes

from aiohttp import web

FORM_BYTES_MAX = 128 * 1024
FIELDS_MAX = 20
FIELD_BYTES_MAX = 4096          # decoded, of any field but the body of a job
BODY = "body"
READ_BYTES = 16 * 1024
PORTION = 4096                  # bytes that are decoded before others have a turn


class TooLarge(Exception):
    """The form, one of its fields, or their number is beyond the limits."""


async def fields_of(request: web.BaseRequest) -> dict[str, str]:
    """Return the fields of a form, the last of each name; fields that are not UTF-8 are left out. Raises TooLarge."""
    content = bytearray()
    async for piece in request.content.iter_chunked(READ_BYTES):
        content += piece
        if len(content) > FORM_BYTES_MAX:
            raise TooLarge
    pairs = bytes(content).split(b"&", FIELDS_MAX)
    if len(pairs) > FIELDS_MAX:
        raise TooLarge
    fields: dict[str, str] = {}
    for pair in pairs:
        name, _, value = pair.partition(b"=")
        try:
            key, text = (await _decoded(name)).decode(), (await _decoded(value)).decode()
        except UnicodeDecodeError:
            continue
        if key != BODY and len(text) > FIELD_BYTES_MAX:
            raise TooLarge
        fields[key] = text
    return fields


async def _decoded(value: bytes) -> bytes:
    """Decode a form value (application/x-www-form-urlencoded)."""
    value = value.replace(b"+", b" ")
    decoded = bytearray()
    at = 0
    while at < len(value):
        end = at + PORTION
        cut = value.find(b"%", end - 2, end)        # of %41 nothing is cut off
        end = end if cut < 0 else cut + 3
        decoded += unquote_to_bytes(value[at:end])
        at = end
        await asyncio.sleep(0)
    return bytes(decoded)
