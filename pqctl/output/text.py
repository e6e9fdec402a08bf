"""Formatting texts. What servers say has no effect on a terminal but that of line ends and tabs."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return `text` with all other control characters, and such as turn the direction of writing, escaped."""
    if text.replace("\n", "").replace("\t", "").isprintable():
        return text
    return "".join(char if char in "\n\t" or char.isprintable() else
                   char.encode("unicode_escape", "backslashreplace").decode() for char in text)


def one_line(text: str) -> str:
    """Return `text` as printable text on one line."""
    return printable(" ".join(text.split()))


def readable(data: bytes) -> str:
    """Return bytes, such as an answer or the body of a job, as printable text."""
    return printable(data.decode("utf-8", "backslashreplace").replace("\r\n", "\n"))


def counted(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: "1 job", "2 jobs"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
