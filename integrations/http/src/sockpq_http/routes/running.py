"""Running jobs, by the id of their hand-out: finished, put back, renewed, given up, moved, changed, looked at."""

from __future__ import annotations

from typing import Any

from pydantic import Field
from sockpq import Finished
from starlette.responses import Response

from sockpq_http.exchange.caller import BEFORE, Calling, answer, given, replay
from sockpq_http.exchange.views import (
    ChangedView,
    CountView,
    FinishedView,
    JobView,
    LeaseView,
    finished_view,
    peeked_view,
)
from sockpq_http.idempotency.key import Key
from sockpq_http.limits import IDS_MAX
from sockpq_http.problems.problem import Problem
from sockpq_http.routes.takes import Then
from sockpq_http.values import times
from sockpq_http.values.bodies import Body
from sockpq_http.values.ids import Id
from sockpq_http.values.model import Model, View
from sockpq_http.values.names import JobId
from sockpq_http.values.patterns import WORD
from sockpq_http.values.times import Moment, Span

REASON = Field(default=None, pattern=WORD, description="Why, in a word; it is kept with the job, or logged.")
ERROR = Field(default=None, description="The text of what went wrong, such as a traceback.")
PRIORITY = Field(default=None, description="64 bits.")
RAN = Field(default=None, description="How long the work took, for fair shares.")


class Done(Model):
    """The way in which a job is finished."""

    result: str | None = Field(default=None, description="Text, for those who await the job.")
    last: bool = Field(default=False, description="A periodic job does not come again.")
    slow: bool = Field(default=False, description="It was too fast, for a queue with a rate.")
    sleep: Span | None = Field(default=None, description="No hand-outs for this long, for a queue with a rate.")
    reason: str | None = REASON
    ran: Span | None = RAN


class Later(Model):
    """The way in which a job is put back."""

    delay: Span | None = Field(default=None, description="It is active again after this time.")
    at: Moment | None = Field(default=None, description="It is active again at this time.")
    priority: int | None = PRIORITY
    first: bool = Field(default=False, description="To its old place instead of the end of its queue.")
    yielded: bool = Field(default=False, description="A slice of the work is finished: the attempt is not counted.")
    reason: str | None = REASON
    error: str | None = ERROR
    slow: bool = False
    sleep: Span | None = None
    ran: Span | None = RAN


class Touch(Model):
    """The lease that a job gets, and its progress."""

    lease: Span | None = Field(default=None, description="From now on; 0: without limit. By default as long as before.")
    then: Then | None = None
    progress: int | None = Field(default=None, ge=0, le=100, description="How much of the work is done, in percent.")
    ran: Span | None = RAN


class Bury(Model):
    """The way in which a job is given up."""

    reason: str | None = REASON
    error: str | None = ERROR
    here: bool = Field(default=False, description="It stays in its own queue, buried.")
    priority: int | None = PRIORITY


class Move(Body):
    """The queue to which a job goes, and what changes on the way."""

    queue: str
    priority: int | None = PRIORITY
    delay: Span | None = None
    at: Moment | None = None


class Change(Body):
    """The properties of a job to change; all others stay."""

    priority: int | None = PRIORITY
    delay: Span | None = None
    at: Moment | None = None
    item: str | None = None
    no_item: bool = Field(default=False, description="It leaves its item.")


class Several(Model):
    """Several running jobs."""

    ids: list[Id] = Field(min_length=1, max_length=IDS_MAX)


class SeveralLater(Several):
    """Several running jobs that go back."""

    first: bool = Field(default=False, description="Each to its old place.")


class SeveralTouched(Several):
    """Several running jobs whose leases are renewed."""

    lease: Span | None = None
    then: Then | None = None


class AllFinishedView(View):
    """The outcome for each job; null for one that is no longer running."""

    results: list[FinishedView | None]


class AllRunningView(View):
    """The outcome for each job: whether it was still running."""

    running: list[bool]


async def done(caller: Calling, job_id: JobId, how: Done | None = None, key: Key = None) -> Response:
    """Finish a running job. 404 when it is not, or no longer, running."""
    options = _options(how or Done())
    return _finished(await caller.execute(key, "done", await caller.id(job_id), **options))


async def later(caller: Calling, job_id: JobId, how: Later | None = None, key: Key = None) -> Response:
    """Put a running job back into its queue."""
    options = _options(how or Later())
    return _changed(await caller.execute(key, "later", await caller.id(job_id), **options))


async def touch(caller: Calling, job_id: JobId, how: Touch | None = None, key: Key = None) -> Response:
    """Renew the lease of a running job, and report progress."""
    options = _options(how or Touch())
    if "lease" in options:
        options["expire"] = options.pop("lease")
    until = await caller.execute(key, "touch", await caller.id(job_id), **options)
    if until is BEFORE:
        return replay(LeaseView)
    return answer(LeaseView(**given(expires_at=times.shown(until))))


async def bury(caller: Calling, job_id: JobId, how: Bury | None = None, key: Key = None) -> Response:
    """Give up a running job: it goes to the dead-letter queue of its queue."""
    options = _options(how or Bury())
    return _finished(await caller.execute(key, "bury", await caller.id(job_id), **options))


async def move(caller: Calling, job_id: JobId, how: Move, key: Key = None) -> Response:
    """Finish a running job here and put it into another queue, in one step."""
    options = given(priority=how.priority, delay=how.delay, at=how.at, data=how.data(), headers=how.header_fields())
    return _finished(await caller.execute(key, "move", await caller.id(job_id), how.queue, **options))


async def peek(caller: Calling, job_id: JobId) -> Response:
    """Look at a running job."""
    job = await caller.read(caller.client.peek(await caller.id(job_id), headers=True))
    if job is None:
        raise job_not_found()
    return answer(peeked_view(job, caller.client.id_text))


async def change(caller: Calling, job_id: JobId, what: Change, key: Key = None) -> Response:
    """Change a running job, for example its body for the next worker."""
    return _changed(await caller.execute(key, "change", await caller.id(job_id), **change_options(what)))


async def delete(caller: Calling, job_id: JobId, key: Key = None) -> Response:
    """Remove a running job."""
    return _finished(await caller.execute(key, "delete", await caller.id(job_id)))


async def done_many(caller: Calling, which: Several) -> Response:
    """Finish several running jobs."""
    results = await caller.client.done_many([await caller.id(one) for one in which.ids])
    return answer(AllFinishedView(results=[None if one is None else finished_view(one) for one in results]))


async def later_many(caller: Calling, which: SeveralLater) -> Response:
    """Put several running jobs back."""
    back = await caller.client.later_many([await caller.id(one) for one in which.ids], first=which.first)
    return answer(AllRunningView(running=back))


async def touch_many(caller: Calling, which: SeveralTouched) -> Response:
    """Renew the leases of several running jobs."""
    running = await caller.client.touch_many([await caller.id(one) for one in which.ids], which.lease, which.then)
    return answer(AllRunningView(running=running))


async def running(caller: Calling) -> Response:
    """List the running jobs, in the order of their ids, without their bodies."""
    return await caller.listed("jobs", caller.client.running, lambda job: JobView(
        id=caller.client.id_text(job.id), queue=job.queue, priority=job.priority,
        **given(expires_at=times.shown(job.expires_at)),
    ))


def change_options(what: Change) -> dict[str, Any]:
    """Return the arguments of the client's change()."""
    found = given(
        data=what.data(), headers=what.header_fields(), priority=what.priority, delay=what.delay, at=what.at,
        item=what.item,
    )
    return {**found, "no_item": True} if what.no_item else found


def job_not_found() -> Problem:
    """Return the answer to a look at a job that is not there."""
    return Problem(404, "there is no such job", "job-not-found", code=404, reason="Job Not Found")


def finished_answer(finished: object) -> Response:
    """Return the answer to a request that finishes a job."""
    return _finished(finished)


def changed_answer(result: object = None) -> Response:
    """Return the answer to a request that has no result."""
    return _changed(result)


def counted_answer(count: Any) -> Response:
    """Return the answer to a request that counts jobs."""
    return replay(CountView) if count is BEFORE else answer(CountView(count=count))


def _finished(finished: object) -> Response:
    return answer(finished_view(finished)) if isinstance(finished, Finished) else replay(FinishedView)


def _changed(result: object) -> Response:
    return replay(ChangedView) if result is BEFORE else answer(ChangedView())


def _options(model: Model) -> dict[str, Any]:
    return model.model_dump(exclude_unset=True, exclude_none=True)
