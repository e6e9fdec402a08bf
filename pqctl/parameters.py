"""Structured arguments of commands, parsed and formatted: a job selected by id or key, and a point in time."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sockpq import Key


def selector(value: str) -> int | Key:
    """Parse a job selector: a running job by its id, or a job in any state by its key (`17`, `mail/a1`)."""
    queue, slash, key = value.partition("/")
    if slash:
        from sockpq import Key

        return Key(queue, key)
    if not (queue.isascii() and queue.isdigit()):
        raise click.BadParameter(f"{value!r} is neither the id of a job nor QUEUE/KEY.")
    return int(queue)


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


def told(job: int | Key) -> str:
    """Name the job for use in a sentence."""
    return f"job {job}" if isinstance(job, int) else f"job {job.key} of {job.queue}"


def local_time(unix: int) -> str:
    """Format Unix time as local time for people."""
    try:
        return datetime.fromtimestamp(unix).isoformat(" ")
    except (OverflowError, ValueError, OSError):
        return str(unix)
