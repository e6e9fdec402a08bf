"""`pqctl job find`: search for jobs by their properties."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from sockpq import FoundJob

from sockpqd.pqctl.actions.existence import absent_queues
from sockpqd.pqctl.connect import reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.output.stdio import say
from sockpqd.pqctl.output.text import sized
from sockpqd.pqctl.parameters import local_time

PAGE_JOBS_MAX = 1000        # of one question to the server
DEAD_ELSEWHERE = (
    "a dead job is found in its dead-letter queue (`pqctl queue peek QUEUE --state dead` shows those that came "
    "from QUEUE)"
)


def find(call: Call, queues: Sequence[str], wanted: Mapping[str, Any], count: int) -> int:
    """Print the first `count` jobs of these queues, or of all, that match everything (FIND)."""
    with reading(call) as (client, server):
        found = list(islice(
            client.find(queues or None, **wanted, count=min(count + 1, PAGE_JOBS_MAX), server=server), count + 1,
        ))
        absent = [] if found else absent_queues(client, queues, server)
    jobs, more = found[:count], len(found) > count
    if call.as_json:
        call.answer("", {"jobs": [_as_json(job) for job in jobs], "more": more})
    elif not jobs:
        elsewhere = [DEAD_ELSEWHERE] if queues and "dead" in (wanted.get("state") or ()) else []
        say("; ".join(["no job matches", *elsewhere, *absent]))
    else:
        from sockpqd.pqctl.output.table import Column, print_rows

        columns = (Column("queue", folds=True), Column("state"), Column("job", folds=True), Column("key", folds=True),
                   Column("item", folds=True), Column("attempt", figures=True), Column("times", folds=True),
                   Column("size", figures=True))
        print_rows(call, columns, [_row(job) for job in jobs])
        if more:
            say(f"there are more than these {count}: --count N shows more")
    return DONE if jobs else REFUSED


def _row(job: FoundJob) -> list[str]:
    meta = job.meta
    reason = [] if meta.reason is None else [f"reason: {meta.reason}"]
    named = (("for", meta.at), ("lease ends", meta.expires_at), ("ended", meta.ended))
    times = reason + [f"{name} {local_time(unix)}" for name, unix in named if unix is not None]
    return [job.queue, job.state, _selector(job), meta.key or "-", job.item or "-", str(meta.attempt),
            ", ".join(times) or "-", sized(job.length)]


def _selector(job: FoundJob) -> str:
    """Return the words by which other commands select this job."""
    if job.number is not None:
        return f"number:{job.number}"
    if job.id is not None:
        return str(job.id)
    return "-" if job.place is None else f"{job.queue}@{job.place.seq}"


def _as_json(job: FoundJob) -> dict[str, object]:
    meta = job.meta
    return {
        "id": job.id, "queue": job.queue, "priority": job.priority, "state": job.state, "item": job.item,
        "key": meta.key, "attempt": meta.attempt, "at": meta.at, "expires_at": meta.expires_at,
        "reason": meta.reason, "number": meta.number, "group": meta.group, "progress": meta.progress,
        "ended": meta.ended, "place": None if job.place is None or job.id is not None else job.place.seq,
        "bytes": job.length,
    }
