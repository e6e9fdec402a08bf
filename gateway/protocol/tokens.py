"""Numbers and attempt data as the words of a line (PROTOCOL "Lines, data, values")."""

from __future__ import annotations


def seconds(duration_ms: int) -> str:
    """Milliseconds as seconds, with a fraction only when there is one."""
    whole, rest = divmod(duration_ms, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def unix(time_ms: int) -> int:
    """Unix time in whole seconds, rounded up."""
    return -(-time_ms // 1000)


def meta(item: str | None, key: str | None, attempts: int, at_ms: int | None, deadline_ms: int | None) -> str:
    """The meta tokens, each with a space before it, in their fixed order."""
    words = "" if item is None else f" IS {item}"
    if key is not None:
        words += f" KEY {key}"
    words += f" TRY {attempts}"
    if at_ms is not None:
        words += f" AT {unix(at_ms)}"
    if deadline_ms is not None:
        words += f" EXPIRE {unix(deadline_ms)}"
    return words
