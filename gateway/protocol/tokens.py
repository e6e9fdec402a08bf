"""Formats values and meta tokens as the words of a line (PROTOCOL "Lines, data, values")."""

from __future__ import annotations

from sockpqd.core import Life


def seconds(duration_ms: int) -> str:
    """Format milliseconds as seconds, with a fraction only if there is one."""
    whole, rest = divmod(duration_ms, 1000)
    return f"{whole}.{rest:03d}".rstrip("0") if rest else str(whole)


def unix(time_ms: int) -> int:
    """Convert Unix time from milliseconds to whole seconds, rounded up."""
    return -(-time_ms // 1000)


def meta(
    item: str | None, key: str | None, attempts: int, reason: str | None, at_ms: int | None, deadline_ms: int | None,
    group: str | None = None, number: int | None = None, progress: int | None = None,
    ended_ms: int | None = None,
) -> str:
    """Format the meta tokens in their fixed order, each preceded by a space."""
    words = "" if item is None else f" IS {item}"
    if number is not None:
        words += f" NUMBER {number}"
    if key is not None:
        words += f" KEY {key}"
    if group is not None:
        words += f" GROUP {group}"
    words += f" TRY {attempts}"
    if reason is not None:
        words += f" REASON {reason}"
    if at_ms is not None:
        words += f" AT {unix(at_ms)}"
    if deadline_ms is not None:
        words += f" EXPIRE {unix(deadline_ms)}"
    if progress is not None:
        words += f" PROGRESS {progress}"
    if ended_ms is not None:
        words += f" ENDED {unix(ended_ms)}"
    return words


def of_life(life: Life) -> str:
    """Format the life of a numbered job, as LIFE shows it."""
    first, started = ["-" if at_ms is None else str(at_ms) for at_ms in (life.first_ms, life.started_ms)]
    origin = "" if life.origin is None else f" FROM {life.origin}"
    return f" CREATED {life.created_ms} FIRST {first} STARTED {started} TAKEN {life.taken}{origin}"
