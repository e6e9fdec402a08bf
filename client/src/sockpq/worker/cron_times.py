"""The times of a crontab line in a time zone, with daylight saving time. Pure functions, except for the zone database.

As in the cron of Debian (Vixie's): a line whose minutes or hours begin with `*` continues in real time, regardless of
clock changes. Any other line runs at the time on the clock: once if the clock shows it twice, and at the end of the gap
if the clock skips it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from sockpq.errors import BadArguments

MISSING = "periodic tasks need cronsim, of the extra sockpq[worker]: pip install cronsim"
NICKNAMES = {
    "@yearly": "0 0 1 1 *", "@annually": "0 0 1 1 *", "@monthly": "0 0 1 * *", "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *", "@midnight": "0 0 * * *", "@hourly": "0 * * * *",
}
FIELDS = 5


def check(line: str, tz: str) -> None:
    """Raise BadArguments unless this is a line of crontab, with five fields or as @daily, and a time zone."""
    next_time(line, tz, 0)


def next_time(line: str, tz: str, after: int) -> int:
    """Return the first time after `after`, both in Unix time, whole seconds. Raises BadArguments."""
    for at in _times(line, tz, after):
        if at > after:              # in an hour that comes twice the clock goes back past it
            return at
    raise BadArguments(f"{line!r} never comes")


def _times(line: str, tz: str, after: int) -> Iterator[int]:
    simulate, wrong = _cronsim()
    zone = UTC if tz == "UTC" else _zone(tz)        # for UTC it takes a shorter way
    fields = NICKNAMES.get(line.lower(), line) if isinstance(line, str) else ""
    if len(fields.split()) != FIELDS:
        raise BadArguments(f"{line!r} is not a crontab line: minute hour day month weekday")
    try:
        for at in simulate(fields, datetime.fromtimestamp(after, zone)):
            yield int(at.timestamp())
    except wrong as error:
        raise BadArguments(f"{line!r} is not a crontab line: minute hour day month weekday ({error})") from error


@lru_cache(maxsize=256)
def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise BadArguments(f"there is no time zone {name!r} (on bare systems: pip install tzdata)") from error


def _cronsim() -> tuple[Any, type[Exception]]:
    try:
        from cronsim import CronSim, CronSimError
    except ImportError as error:
        raise BadArguments(MISSING) from error
    return CronSim, CronSimError
