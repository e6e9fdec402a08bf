"""`pqctl job change`, `delete`, `touch`, `bury` and `kick`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, cast

import click
from sockpq import Key, Number, Place

from sockpqd.pqctl.actions.existence import existing_job, must_exist
from sockpqd.pqctl.actions.jobs.one_by_one import end_each
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE
from sockpqd.pqctl.output.text import counted
from sockpqd.pqctl.parameters import described, local_time


def change(call: Call, job: int | Key | Place | Number, changes: Mapping[str, Any]) -> int:
    """Change a job (CHANGE), selected by id, key, place or number."""
    if not changes:
        raise click.UsageError("nothing to change: give at least one option")
    with cluster_of(call, serving=True) as (client, _), existing_job(client, job):
        client.change(job, **changes)
    call.answer(f"{described(job)} is changed", {"job": _as_json(job)})
    return DONE


def delete(call: Call, job: int | Key | Place | Number) -> int:
    """Delete a job (DELETE), selected by id, key, place or number."""
    with cluster_of(call, serving=True) as (client, _), existing_job(client, job):
        ended = client.delete(job)
    last = [what for what, over in (("its queue", ended.queue_done), ("its item", ended.item_done)) if over]
    sentence = f"{described(job)} is deleted" + (f", the last one of {' and of '.join(last)}" if last else "")
    call.answer(sentence, {"job": _as_json(job), "queue_done": ended.queue_done, "item_done": ended.item_done})
    return DONE


def delete_ended(call: Call, job: int | Key | Place | Number) -> int:
    """Remove the record that a queue keeps of an ended job (DELETE NUMBER .. ENDED)."""
    if not isinstance(job, Number):
        raise click.UsageError("--ended goes with number:N")
    with cluster_of(call, serving=True) as (client, _), existing_job(client, job):
        client.delete_ended(job)
    call.answer(f"nothing is kept of {described(job)} any more", {"job": _as_json(job)})
    return DONE


def touch(call: Call, number: int, expire: float | None, then: str | None) -> int:
    """Renew the lease of a running job (TOUCH)."""
    with cluster_of(call, serving=True) as (client, _), existing_job(client, number):
        ends = client.touch(number, expire, cast(Literal["later", "done", "dead"] | None, then))
    call.answer(f"the lease of job {number} ends {'never' if ends is None else local_time(ends)}",
                {"id": number, "expires_at": ends})
    return DONE


def bury(call: Call, ids: Sequence[int], reason: str | None, error: str | None = None, *, here: bool = False) -> int:
    """Bury running jobs (BURY), one after the other."""
    word = "buried" if here else "dead"
    return end_each(call, ids, lambda client, number: client.bury(number, reason, here=here, error=error),
                    key=word, one=word, many=word)


def kick(call: Call, queue: str, count: int, *, here: bool = False) -> int:
    """Bring dead jobs back to their queue (KICK), or with `here` make buried or delayed ones ready."""
    with cluster_of(call, serving=True) as (client, _):
        moved = client.kick(queue, count, here=here)
        if not moved:
            must_exist(client, queue)
    call.answer(f"{counted(moved, 'job' if here else 'dead job')} of {queue} {'waits' if moved == 1 else 'wait'} again",
                {"queue": queue, "moved": moved})
    return DONE


def _as_json(job: int | Key | Place | Number) -> object:
    return job if isinstance(job, int) else job._asdict()
