"""The body of a job on a page: as text, as JSON or in hex, always as text of the page and never as part of it."""

from __future__ import annotations

import json

from gateway.dashboard.markup import Markup, tag

PREVIEW_BYTES = 80
SHOWN_BYTES = 32 * 1024         # of a body on its own page
JSON_BYTES = 16 * 1024          # beyond this no attempt is made to read it
HEX_COLUMNS = 16
FORMS = ("text", "json", "hex")


def preview(data: bytes) -> Markup:
    """Return the beginning of a body in one line."""
    text = data[:PREVIEW_BYTES].decode("utf-8", "backslashreplace").replace("\n", "⏎")
    more = f"… {len(data)} bytes" if len(data) > PREVIEW_BYTES else ""
    return tag("code", text, more)


def whole(data: bytes, form: str) -> Markup:
    """Return a body in this form, or in the one that suits it; the rest of a long one is left out."""
    shown = data[:SHOWN_BYTES]
    if form == "hex" or (not form and not _is_text(shown)):
        content = _hex(shown[:SHOWN_BYTES // 4])
    elif form == "json" or not form:
        content = _json(data) or shown.decode("utf-8", "backslashreplace")
    else:
        content = shown.decode("utf-8", "backslashreplace")
    return tag("pre", content, tabindex="0")


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if len(data) < SHOWN_BYTES or error.start < SHOWN_BYTES - 3:      # else a letter is cut in two
            return False
        text = data[:error.start].decode()
    return all(letter.isprintable() or letter in "\r\n\t" for letter in text)


def _json(data: bytes) -> str | None:
    if len(data) > JSON_BYTES:
        return None
    try:
        return json.dumps(json.loads(data), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return None


def _hex(data: bytes) -> str:
    lines = []
    for at in range(0, len(data), HEX_COLUMNS):
        row = data[at:at + HEX_COLUMNS]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {row.hex(' '):<{3 * HEX_COLUMNS}} {text}")
    return "\n".join(lines)
