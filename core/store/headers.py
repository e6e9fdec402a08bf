"""The headers of a job: lines `<name>: <value>`, each ended by LF, at the start of its data (spec/state-machine 2.5).

Their length is kept with the job (Extras.head). Jobs without headers use nothing of this module.
"""

from __future__ import annotations

import re

from sockpqd.core.limits import HEADER_NAME_BYTES_MAX, HEADER_VALUE_BYTES_MAX, HEADERS_BYTES_MAX, HEADERS_MAX

_NAME = re.compile(rb"[A-Za-z0-9_.-]{1,%d}" % HEADER_NAME_BYTES_MAX)
# One header or two, as most jobs have that have any: of ASCII, and with different names.
_USUAL = re.compile(
    rb"(?P<first>[A-Za-z0-9_.-]{1,%(name)d}): [ -~]{0,%(value)d}\n"
    rb"(?:(?!(?P=first): )[A-Za-z0-9_.-]{1,%(name)d}: [ -~]{0,%(value)d}\n)?"
    % {b"name": HEADER_NAME_BYTES_MAX, b"value": HEADER_VALUE_BYTES_MAX})
_CONTROL = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f]")      # category Cc, but for the LF at the end of a line


def wrong_headers(block: bytes) -> str | None:
    """Return an error message about these headers, in printable ASCII; None if they are valid."""
    if _USUAL.fullmatch(block):
        return None
    if len(block) > HEADERS_BYTES_MAX:
        return f"headers take more than {HEADERS_BYTES_MAX} bytes"
    if not block:
        return None
    if not block.endswith(b"\n"):
        return "each header ends with LF"
    try:
        text = block.decode()
    except UnicodeDecodeError:
        return "headers are UTF-8"
    if _CONTROL.search(text):
        return "a header has a control character"
    lines = block[:-1].split(b"\n")
    if len(lines) > HEADERS_MAX:
        return f"there are more than {HEADERS_MAX} headers"
    names: set[bytes] = set()
    for number, line in enumerate(lines, 1):
        name, found, value = line.partition(b": ")
        if not found or not _NAME.fullmatch(name):
            return f"header {number} is not <name>: <value>"
        if len(value) > HEADER_VALUE_BYTES_MAX:
            return f"header {number} has more than {HEADER_VALUE_BYTES_MAX} bytes"
        names.add(name)
    return None if len(names) == len(lines) else "two headers have one name"


def has_header(block: bytes, line: bytes) -> bool:
    """Return whether the header with this line, `<name>: <value>` and LF, is in the block. `block`: valid headers."""
    return block.startswith(line) or b"\n" + line in block


def header_value(block: bytes, name: str) -> str | None:
    """Return the value of the header `name` in a valid block of headers; None if there is none."""
    _, found, rest = (b"\n" + block).partition(b"\n" + name.encode() + b": ")
    return rest.partition(b"\n")[0].decode(errors="replace") if found else None
