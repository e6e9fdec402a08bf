"""Formatting short texts."""

from __future__ import annotations


def one_line(text: str) -> str:
    """Return `text` on one line, with control characters escaped for the terminal."""
    spaced = " ".join(text.split())
    return "".join(char if char.isprintable() else char.encode("unicode_escape", "backslashreplace").decode()
                   for char in spaced)


def counted(count: int, one: str, many: str | None = None) -> str:
    """Format a count with its noun: "1 job", "2 jobs"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
