"""Answers that several families share: jobs, and their outcomes."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field
from sockpq import Finished, FoundJob, Life, PeekedJob, Stored
from sockpq.aio import Job

from sockpq_http.values import bodies, times
from sockpq_http.values.bodies import BodyView
from sockpq_http.values.ids import Id, Seq, Shown
from sockpq_http.values.model import Replayable, View
from sockpq_http.values.times import Time


class LifeView(View):
    """The times at which a numbered job was put and handed out, and how often."""

    created: Time | None = None
    first: Time | None = Field(default=None, description="When it was handed out first.")
    started: Time | None = Field(default=None, description="When it was handed out last.")
    taken: int = 0
    died_in: str | None = Field(default=None, description="Of a dead job: the queue that gave it up.")


class JobView(BodyView):
    """A job; properties that it lacks are left out."""

    id: Id | None = Field(default=None, description="The id of its hand-out, while it is running.")
    queue: str
    priority: int
    state: str | None = None
    headers: dict[str, str] | None = None
    item: str | None = None
    key: str | None = None
    number: Id | None = None
    place: Seq | None = Field(default=None, description="Its place in its queue.")
    attempt: int | None = Field(default=None, description="How often it was handed out, this time included.")
    group: str | None = None
    reason: str | None = Field(default=None, description="Why a worker put it back last.")
    at: Time | None = Field(default=None, description="For when it was put, or when it is due.")
    expires_at: Time | None = Field(default=None, description="When its lease ends.")
    progress: int | None = None
    ended: Time | None = None
    length: int | None = Field(default=None, description="The bytes of its body, where that is not shown.")
    cluster: str | None = None
    life: LifeView | None = None


class JobsView(View):
    """A list of jobs."""

    jobs: list[JobView]


class StoredView(Replayable):
    """A job that was put."""

    outcome: Literal["new", "exists", "replaced", "dropped"] | None = Field(
        default=None,
        description="`exists`: by `on_duplicate` or `dedup`, nothing was changed; `dropped`: its items have ended.",
    )
    number: Id | None = None
    item: str | None = None
    key: str | None = None


class FinishedView(Replayable):
    """A job that was finished, and whether it was the last unfinished one of its queue or its item."""

    queue_done: bool = False
    item_done: bool = False
    next_at: Time | None = Field(default=None, description="Of a periodic job: when it is active again.")
    dropped: bool = Field(default=False, description="Its result or error was not kept: memory or disk are short.")


class CountView(Replayable):
    """The number of jobs, or queues."""

    count: int = 0


class LeaseView(Replayable):
    """The lease of a running job."""

    expires_at: Time | None = Field(default=None, description="When it ends; left out: never.")


class ChangedView(Replayable):
    """A change that has no other result."""


def stored_view(stored: Stored, shown: Shown) -> StoredView:
    """Return the view of a job that was put."""
    found: dict[str, Any] = {"outcome": stored.outcome}
    if stored.number is not None:
        found["number"] = shown(stored.number)
    return StoredView(**found, **_known(item=stored.item, key=stored.key))


def finished_view(finished: Finished) -> FinishedView:
    """Return the view of a job that was finished."""
    found = FinishedView(queue_done=finished.queue_done, item_done=finished.item_done)
    if finished.next_at is not None:
        found.next_at = times.shown(finished.next_at)
    if finished.dropped:
        found.dropped = True
    return found


def taken_view(job: Job, shown: Shown, headers: dict[str, str] | None = None) -> JobView:
    """Return the view of a job that was taken; `headers`: of one that was taken without them."""
    meta = job.meta
    headers = job.headers if headers is None else headers
    known = _known(
        item=job.item, headers=headers or None,
        **({} if meta is None else {
            "key": meta.key, "number": _id(meta.number, shown), "attempt": meta.attempt, "group": meta.group,
            "reason": meta.reason, "at": times.shown(meta.at), "expires_at": times.shown(meta.expires_at),
            "progress": meta.progress,
        }),
    )
    return JobView(
        id=shown(job.id), queue=job.queue, priority=job.priority, **bodies.shown(job.data, headers), **known
    )


def peeked_view(job: PeekedJob, shown: Shown) -> JobView:
    """Return the view of a job that was looked at."""
    known = _known(
        id=_id(job.id, shown), item=job.item, headers=job.headers or None, key=job.key, number=_id(job.number, shown),
        place=str(job.place.seq) if job.place else None, attempt=job.attempt, group=job.group, reason=job.reason,
        at=times.shown(job.at), expires_at=times.shown(job.expires_at), progress=job.progress,
        ended=times.shown(job.ended), life=_life(job.life),
    )
    return JobView(
        queue=job.queue, priority=job.priority, state=job.state, **bodies.shown(job.data, job.headers), **known
    )


def found_view(job: FoundJob, shown: Shown) -> JobView:
    """Return the view of a job that was found, without its body."""
    meta = job.meta
    known = _known(
        id=_id(job.id, shown), item=job.item, key=meta.key, number=_id(meta.number, shown),
        place=str(job.place.seq) if job.place else None, attempt=meta.attempt, group=meta.group, reason=meta.reason,
        at=times.shown(meta.at), expires_at=times.shown(meta.expires_at), progress=meta.progress,
        ended=times.shown(meta.ended), cluster=job.cluster,
    )
    return JobView(queue=job.queue, priority=job.priority, state=job.state, length=job.length, **known)


def _life(life: Life | None) -> LifeView | None:
    if life is None:
        return None
    return LifeView(**_known(
        created=times.shown(life.created), first=times.shown(life.first), started=times.shown(life.started),
        taken=life.taken, died_in=life.died_in,
    ))


def _id(value: int | None, shown: Shown) -> str | None:
    return None if value is None else shown(value)


def _known(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value is not None}
