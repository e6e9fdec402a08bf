"""The body of a job on a page: as text, as JSON or in hex, always as text of the page and never as part of it."""

from __future__ import annotations

import asyncio
import json

from sockpqd.gateway.dashboard.markup import Markup, tag
from sockpqd.gateway.dashboard.markup import text as escaped

PREVIEW_BYTES = 80
CALL_BYTES = 1024               # of a body that is read as the call of a task
SHOWN_BYTES = 32 * 1024         # of a body on its own page
HEX_BYTES = SHOWN_BYTES // 4    # of one in hex
JSON_BYTES = 16 * 1024          # beyond this no attempt is made to read it
INDENTED_MAX = 256 * 1024       # characters; deep nesting makes more of it
HEX_COLUMNS = 16
FORMS = ("text", "json", "hex")
ENCODER = json.JSONEncoder(indent=2, ensure_ascii=False)
BREAKS = dict.fromkeys(b"\r\n\t")
PORTION = 1000                  # characters that are escaped before others have a turn,
PIECES = 20                     # pieces of JSON, each of which comes out of as many generators as it is deep,
LINES = 50                      # lines of hex


def preview(data: bytes) -> Markup:
    """Return the beginning of a body in one line: the call of a task, or the text as it is."""
    call = _call(data)
    if call is not None:
        return tag("code", call if len(call) <= PREVIEW_BYTES else f"{call[:PREVIEW_BYTES]}…")
    text = data[:PREVIEW_BYTES].decode("utf-8", "backslashreplace").replace("\n", "⏎")
    return tag("code", text + "…" * (len(data) > PREVIEW_BYTES))


def _call(data: bytes) -> str | None:
    """Return the call of a task in a body put by a worker's program, as code; None if the body is not a call."""
    if len(data) > CALL_BYTES or not data.startswith(b"{"):
        return None
    try:
        fields = json.loads(data)
        task, args, kwargs = fields["task"], fields.get("args", []), fields.get("kwargs", {})
        if not (isinstance(task, str) and isinstance(args, list) and isinstance(kwargs, dict)):
            return None
        words = [*map(_written, args), *(f"{name}={_written(value)}" for name, value in kwargs.items())]
    except (ValueError, KeyError, RecursionError):
        return None
    return f"{task}({', '.join(words)})"


def _written(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


async def whole(data: bytes, form: str) -> Markup:
    """Return a body in this form, or in the most suitable one; a long body is cut."""
    shown = data[:SHOWN_BYTES]
    text = None
    if form == "hex" or (not form and not _is_text(shown)):
        text = await _hex(shown[:HEX_BYTES])
    elif form == "json" or not form:
        text = await _json(data)
    if text is None:
        text = shown.decode("utf-8", "backslashreplace")
    portions = []
    for at in range(0, len(text), PORTION):
        portions.append(escaped(text[at:at + PORTION]))
        await asyncio.sleep(0)
    return tag("pre", portions, tabindex="0")


def _is_text(data: bytes) -> bool:
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        if len(data) < SHOWN_BYTES or error.start < SHOWN_BYTES - 3:      # else a letter is cut in two
            return False
        text = data[:error.start].decode()
    return text.translate(BREAKS).isprintable()


async def _json(data: bytes) -> str | None:
    """Return JSON with indentation; None if the data are not JSON, or too long."""
    if len(data) > JSON_BYTES:
        return None
    pieces: list[str] = []
    length = 0
    try:
        for piece in ENCODER.iterencode(json.loads(data)):
            pieces.append(piece)
            length += len(piece)
            if length > INDENTED_MAX:
                return None
            if len(pieces) % PIECES == 0:
                await asyncio.sleep(0)
    except (ValueError, RecursionError):
        return None
    return "".join(pieces)


async def _hex(data: bytes) -> str:
    lines = []
    for at in range(0, len(data), HEX_COLUMNS):
        row = data[at:at + HEX_COLUMNS]
        text = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in row)
        lines.append(f"{at:08x}  {row.hex(' '):<{3 * HEX_COLUMNS}} {text}")
        if len(lines) % LINES == 0:
            await asyncio.sleep(0)
    return "\n".join(lines)


def task_of(data: bytes) -> str:
    """Return the name of the task in a body put by a worker's program; empty if there is none."""
    if len(data) > JSON_BYTES:
        return ""
    try:
        task = json.loads(data)["task"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""
    return task if isinstance(task, str) else ""
