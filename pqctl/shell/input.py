"""Turns typed input into protocol bytes: a command line and its data.

The protocol requires the length of the data in the line and the data after it. There are three ways to type that:

    PUT mail 0 "hello\n"        a string, as in JSON, stands where the length would: it is the data
    PUT mail 0 <letter.txt      so does the name of a file
    PUT mail 0 5                the data is asked for

`?` stands for HELP, and `exit` for QUIT.

Sources: docs/PROTOCOL.md, "Lines, data, values".
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import NamedTuple

FILE_BYTES_MAX = 2**32          # of a snapshot

_STRING = re.compile(r'(?<=\s)"(?:[^"\\]|\\.)*"(?=\s|$)')
_FILE = re.compile(r"(?<=\s)<(\S+)")

ReadFile = Callable[[str], bytes]


class Mistyped(Exception):
    """The typed input cannot be sent; the message gives the reason."""


def bytes_of(text: str) -> bytes:
    """Encode a text that was read. Bytes that are not UTF-8 stay as they were: the server interprets them."""
    return text.encode("utf-8", "surrogateescape")


class Typed(NamedTuple):
    """A line without its end, the data given with it, and how many bytes or parts must still be typed."""

    line: str
    data: bytes = b""
    missing_bytes: int = 0
    parts: int = 0              # of PUTS: for each of them a line follows, with data of its own

    @property
    def sent(self) -> bytes:
        """The line and its data as they are sent."""
        return bytes_of(self.line) + b"\r\n" + self.data

    @property
    def verb(self) -> str:
        """The first word of the command, after REQ and its number, in upper case."""
        return (_words(self.line) or [""])[0]


def understand(text: str, read_file: ReadFile, *, part: bool = False) -> Typed:
    """Return what to send for a line; `part`: it is one of PUTS, without a verb. Raises Mistyped."""
    text = text.strip()
    if text.startswith("?") and not part:
        text = f"HELP {text[1:]}".strip()
    if text == "exit" and not part:
        text = "QUIT"
    line, data = _with_length(text, read_file)
    if data is not None:
        return Typed(line, data)
    words = ["PUT", *line.split()] if part else _words(line)
    if words[:1] == ["PUTS"] and len(words) == 2 and words[1].isdigit():
        return Typed(line, parts=int(words[1]))
    return Typed(line, missing_bytes=_length(words))


def _with_length(text: str, read_file: ReadFile) -> tuple[str, bytes | None]:
    """Put the length where a string or file stands, and return its content; None if there is neither."""
    found = _STRING.search(text)
    if found:
        try:
            data = json.loads(found[0]).encode()
        except ValueError as error:
            raise Mistyped(f"{found[0]} is not a JSON string: {error}") from None
    else:
        found = _FILE.search(text)
        if not found:
            return text, None
        data = read_file(found[1])
    return f"{text[:found.start()]}{len(data)}{text[found.end():]}", data


def _words(line: str) -> list[str]:
    """Return the words of a command, after REQ and its number, its verb in upper case; servers accept either."""
    words = line.split()
    if words and words[0].upper() == "REQ":
        words = words[2:]
    return [words[0].upper(), *words[1:]] if words else []


def _length(words: list[str]) -> int:
    """Return how many bytes of data follow this line, as far as known; the server refuses the rest."""
    verb = words[0] if words else ""
    if verb in ("CHANGE", "MOVE"):
        at = len(words) - 1 if words[-2:-1] == ["DATA"] else 0
    elif words[:2] == ["PULSE", "SET"]:
        at = 3
    else:
        at = {"PUT": 3, "CLONE": 1, "NOTIFY": 2}.get(verb, 0)
    return int(words[at]) if 0 < at < len(words) and re.fullmatch("[0-9]{1,10}", words[at]) else 0
