"""Structured arguments of commands, parsed and formatted: a job selected by id, key or place, and a point in time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sockpq import Key, Number, Place


NUMBER = "number:"
HEADER = "header:"


def selector(value: str) -> int | Key | Place | Number:
    """Parse a job selector: a running job by its id, one in any state by its key or number, a waiting one by its place.

    As in `17`, `mail/a1`, `number:1740800000000001`, `mail@1740800000000001`.
    """
    queue, at, place = value.rpartition("@")
    if at and _is_number(place):
        from sockpq import Place

        return Place(queue, int(place))
    queue, slash, key = value.rpartition("/")       # names of queues may have one, keys have none
    if slash:
        from sockpq import Key

        return Key(queue, key)
    if value.startswith(NUMBER) and _is_number(value[len(NUMBER):]):
        from sockpq import Number

        return Number(int(value[len(NUMBER):]))
    if not _is_number(value):
        raise click.BadParameter(f"{value!r} is neither the id of a job nor QUEUE/KEY nor number:N nor QUEUE@PLACE.")
    return int(value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def pair(value: str) -> tuple[str, str]:
    """Split the name and the value of a header: NAME=VALUE; raises click.UsageError."""
    name, equals, text = value.partition("=")
    if not equals:
        raise click.UsageError(f"{value!r} is not like NAME=VALUE")
    return name, text


def group_by(value: str) -> str | tuple[str, str]:
    """Parse the source of the groups of a queue's jobs: `user`, `item`, `off`, or a header's name after `header:`."""
    if value.startswith(HEADER) and value != HEADER:
        return "head", value[len(HEADER):]
    if value not in ("user", "item", "off"):
        raise click.BadParameter(f"{value!r} is none of user, item, header:NAME, off.")
    return value


def moment(value: str) -> float:
    """Parse a time: Unix seconds, or like 2026-12-24T18:00 in this machine's time zone."""
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(f"{value!r} is neither Unix time in seconds nor like 2026-12-24T18:00.") from None


def described(job: int | Key | Place | Number) -> str:
    """Name the job for use in a sentence."""
    from sockpq import Number, Place

    if isinstance(job, Number):
        return f"job with number {job.number}"
    if isinstance(job, Place):
        return f"job at place {job.seq} of {job.queue}"
    return f"job {job}" if isinstance(job, int) else f"job {job.key} of {job.queue}"


def local_time(unix: float) -> str:
    """Format Unix time as local time for people, with milliseconds where it has a fraction."""
    try:
        return datetime.fromtimestamp(unix).isoformat(" ", "auto" if unix == int(unix) else "milliseconds")
    except (OverflowError, ValueError, OSError):
        return str(unix)
