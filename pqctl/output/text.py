"""Formatting texts. Server output must not affect a terminal except by line ends and tabs."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return `text` with other control characters, and those that change the writing direction, escaped."""
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


def sized(count: int) -> str:
    """Format a number of bytes for people: "1.2 GiB"."""
    number, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1000 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"


def lasting(seconds: float) -> str:
    """Format a time for people: "5 s", "3 min", "2.5 h", "4 days"."""
    if seconds < 120:
        return f"{seconds:.3g} s"
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h" if seconds < 172800 else f"{seconds / 86400:.1f} days"
