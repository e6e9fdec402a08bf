"""Structured arguments of commands, parsed and formatted: a job selected by id, key or place, and a point in time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sockpq import Key, Place


def selector(value: str) -> int | Key | Place:
    """Parse a job selector: a running job by its id, one in any state by its key, a waiting one by its place.

    As in `17`, `mail/a1`, `mail@1740800000000001`.
    """
    queue, slash, key = value.partition("/")
    if slash:
        from sockpq import Key

        return Key(queue, key)
    queue, at, place = value.rpartition("@")
    if at and _is_number(place):
        from sockpq import Place

        return Place(queue, int(place))
    if not _is_number(value):
        raise click.BadParameter(f"{value!r} is neither the id of a job nor QUEUE/KEY nor QUEUE@PLACE.")
    return int(value)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def moment(value: str) -> float:
    """Parse a time: Unix seconds, or like 2026-12-24T18:00 in this machine's time zone."""
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(f"{value!r} is neither Unix time in seconds nor as 2026-12-24T18:00.") from None


def told(job: int | Key | Place) -> str:
    """Name the job for use in a sentence."""
    from sockpq import Place

    if isinstance(job, Place):
        return f"job at place {job.seq} of {job.queue}"
    return f"job {job}" if isinstance(job, int) else f"job {job.key} of {job.queue}"


def local_time(unix: int) -> str:
    """Format Unix time as local time for people."""
    try:
        return datetime.fromtimestamp(unix).isoformat(" ")
    except (OverflowError, ValueError, OSError):
        return str(unix)
