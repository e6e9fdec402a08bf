"""The times of a line of crontab in a time zone, summer time included. Pure, but for the time zone database.

As in Vixie's cron: a line whose hours begin with `*` goes on in real time, whatever clocks show. Another one runs at
the hour on the clock: once where the clock shows it twice, and at the end of the gap where it shows it never.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sockpq.errors import BadArguments

STEPS_MAX = 50          # a day has at most two ambiguous hours; a line that finds no time in this many has none
MISSING = "periodic tasks need croniter: pip install 'sockpq[worker]'"


def check(line: str, tz: str) -> None:
    """Raise BadArguments unless this is a line of crontab, with five fields or as @daily, and a time zone."""
    cron = _croniter()
    if not isinstance(line, str) or (len(line.split()) != 5 and not line.startswith("@")) or not cron.is_valid(line):
        raise BadArguments(f"{line!r} is not a crontab line: minute hour day month weekday")
    _zone(tz)
    try:
        next_time(line, tz, 0)
    except ValueError as error:
        raise BadArguments(f"{line!r} never comes: {error}") from error


def next_time(line: str, tz: str, after: int) -> int:
    """The first time after `after`, both in Unix time, whole seconds."""
    zone = _zone(tz)
    return _in_real_time(line, zone, after) if _goes_on(line) else _by_the_clock(line, zone, after)


def times_between(line: str, tz: str, after: int, until: int, times_max: int) -> list[int]:
    """The times after `after` and not after `until`, at most this many."""
    found: list[int] = []
    at = next_time(line, tz, after)
    while at <= until and len(found) < times_max:
        found.append(at)
        at = next_time(line, tz, at)
    return found


def _goes_on(line: str) -> bool:
    """Is the field of the hours one that begins with `*`?"""
    return line == "@hourly" or (not line.startswith("@") and line.split()[1].startswith("*"))


def _in_real_time(line: str, zone: ZoneInfo, after: int) -> int:
    """Within one offset from UTC the clock is real time; at its end go on from there."""
    begin = after
    for _ in range(STEPS_MAX):
        offset = _offset(zone, begin + 1)
        at = _next_on_clock(line, _clock(begin, offset)) - offset
        change = _change(zone, begin + 1, at, offset)
        if change is None:
            return at
        begin = change - 1
    raise BadArguments(f"{line!r} has no time in this time zone")


def _by_the_clock(line: str, zone: ZoneInfo, after: int) -> int:
    shown = _clock(after, _offset(zone, after))
    for _ in range(STEPS_MAX):
        at = _next_on_clock(line, shown)
        shown = _clock(at, 0)
        real = _instant(zone, shown)
        if real > after:
            return real
    raise BadArguments(f"{line!r} has no time in this time zone")


def _instant(zone: ZoneInfo, shown: datetime) -> int:
    """When the clock shows this for the first time; in a gap: when that ends."""
    first = int(shown.replace(tzinfo=zone, fold=0).timestamp())
    if _clock(first, _offset(zone, first)) == shown:
        return first
    second = int(shown.replace(tzinfo=zone, fold=1).timestamp())
    low, high = min(first, second), max(first, second)
    change = _change(zone, low, high, _offset(zone, low))
    return high if change is None else change


def _change(zone: ZoneInfo, low: int, high: int, offset: int) -> int | None:
    """The first moment in (low, high] with another offset than `offset`, that at `low`; None if that at `high` is.

    Changes are far apart: two of them that cancel each other are found by looking in steps of a week.
    """
    week = 7 * 86_400
    while low + week < high and _offset(zone, low + week) == offset:
        low += week
    high = min(high, low + week)
    if _offset(zone, high) == offset:
        return None
    while high - low > 1:
        middle = (low + high) // 2
        if _offset(zone, middle) == offset:
            low = middle
        else:
            high = middle
    return high


def _offset(zone: ZoneInfo, at: int) -> int:
    """Seconds by which the clock is ahead of UTC."""
    offset = datetime.fromtimestamp(at, zone).utcoffset()
    return 0 if offset is None else round(offset.total_seconds())


def _clock(at: int, offset: int) -> datetime:
    """What a clock with this offset shows."""
    return datetime.fromtimestamp(at, UTC).replace(tzinfo=None) + timedelta(seconds=offset)


def _next_on_clock(line: str, shown: datetime) -> int:
    """The next time as seconds on the clock, from 1970 on."""
    try:
        following: datetime = _croniter()(line, shown).get_next(datetime)
    except Exception as error:      # croniter has errors of its own for lines as "0 0 30 2 *"
        raise ValueError(str(error)) from error
    return int(following.replace(tzinfo=UTC).timestamp())


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadArguments(f"there is no time zone {name!r} (on bare systems: pip install tzdata)") from error


def _croniter() -> Any:
    try:
        from croniter import croniter
    except ImportError as error:
        raise BadArguments(MISSING) from error
    return croniter
