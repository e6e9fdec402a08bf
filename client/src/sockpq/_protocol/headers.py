"""The header block of a job: lines `<name>: <value>` at the beginning of its data (PROTOCOL "Headers")."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sockpq.errors import BadArguments, ProtocolError

BLOCK_BYTES_MAX = 16_384
HEADERS_MAX = 64
NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
VALUE_BYTES_MAX = 1024
CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")       # the category Cc of Unicode


def header_block(headers: Mapping[str, str] | None) -> bytes:
    """Return the block for these headers, b"" for none. Raises BadArguments, TypeError."""
    if not headers:
        return b""
    if len(headers) > HEADERS_MAX:
        raise BadArguments(f"{len(headers)} headers; a job has {HEADERS_MAX} at most")
    block = b"".join(f"{header_name(name)}: {_value(name, value)}\n".encode() for name, value in headers.items())
    if len(block) > BLOCK_BYTES_MAX:
        raise BadArguments(f"headers of {len(block)} bytes; a job has {BLOCK_BYTES_MAX} at most")
    return block


def headers_of(block: bytes) -> dict[str, str]:
    """Parse the block that a server sent. Raises ProtocolError."""
    try:
        lines = block.decode().split("\n")
    except UnicodeDecodeError as error:
        raise ProtocolError(f"a header block that is not UTF-8: {error}") from error
    if lines.pop():
        raise ProtocolError("a header block that does not end with a line end")
    pairs = [line.partition(": ") for line in lines]
    if not all(separator and NAME.fullmatch(name) for name, separator, _ in pairs):
        raise ProtocolError("a line of a header block is not <name>: <value>")
    return {name: value for name, _, value in pairs}


def header_name(name: str) -> str:
    """Check the name of a header and return it. Raises BadArguments, TypeError."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a header must be a string, not {type(name).__name__}")
    if not NAME.fullmatch(name):
        raise BadArguments(f"header {name!r}: a name is 1 to 64 of A-Z a-z 0-9 _ . -")
    return name


def _value(name: str, value: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"the value of header {name} must be a string, not {type(value).__name__}")
    if CONTROL.search(value):
        raise BadArguments(f"header {name}: its value has a control character")
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        raise BadArguments(f"header {name}: its value is not text that UTF-8 can encode: {error}") from error
    if length > VALUE_BYTES_MAX:
        raise BadArguments(f"header {name}: its value has {length} bytes; the limit is {VALUE_BYTES_MAX}")
    return value
