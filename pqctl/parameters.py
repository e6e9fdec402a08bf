"""Arguments of commands that are more than a word or a number: a job by id or key, a moment; and how they are told."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from sockpq import Key


def selector(value: str) -> int | Key:
    """A running job by its id, or a job in whatever state by its key: `17`, `mail/a1`."""
    queue, slash, key = value.partition("/")
    if slash:
        from sockpq import Key

        return Key(queue, key)
    if not (queue.isascii() and queue.isdigit()):
        raise click.BadParameter(f"{value!r} is neither the id of a job nor QUEUE/KEY.")
    return int(queue)


def moment(value: str) -> float:
    """A time: Unix seconds, or as 2026-12-24T18:00 on this machine's clock."""
    try:
        return float(value)
    except ValueError:
        pass
    try:
        return datetime.fromisoformat(value).timestamp()
    except (ValueError, OverflowError, OSError):
        raise click.BadParameter(f"{value!r} is neither Unix time in seconds nor as 2026-12-24T18:00.") from None


def told(job: int | Key) -> str:
    """The job in a sentence."""
    return f"job {job}" if isinstance(job, int) else f"job {job.key} of {job.queue}"


def local_time(unix: int) -> str:
    """For people."""
    try:
        return datetime.fromtimestamp(unix).isoformat(" ")
    except (OverflowError, ValueError, OSError):
        return str(unix)
