"""Jobs by their number, in every state and queue, even after their end."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from sockpq import Awaited, Key, Number
from starlette.responses import Response

from sockpq_http.exchange.caller import Caller, Calling, answer, given
from sockpq_http.exchange.views import peeked_view
from sockpq_http.idempotency.key import Key as IdempotencyKey
from sockpq_http.limits import WAIT_S_MAX
from sockpq_http.routes.running import (
    Change,
    change_options,
    changed_answer,
    counted_answer,
    finished_answer,
    job_not_found,
)
from sockpq_http.values import bodies, times
from sockpq_http.values.bodies import BodyView
from sockpq_http.values.model import View
from sockpq_http.values.names import JobNumber
from sockpq_http.values.times import SpanText, Time

Wait = Annotated[SpanText, Query(le=WAIT_S_MAX, description="How long to wait for its end.")]
WAIT_S = 30.0
LEAST_WAIT_S = 0.001


class EndView(BodyView):
    """The end of a job: its body is the result of one that is done, the error of one that is dead or buried."""

    state: Literal["done", "cancelled", "expired", "dead", "buried", "unfinished"]


class StatView(View):
    """The history of a job with a number; times in seconds."""

    queue: str
    state: str
    priority: int
    length: int
    created: Time | None = None
    age: int
    lease: float | None = None
    delay: float
    left: int
    attempts: int
    reserves: int
    timeouts: int
    releases: int
    buries: int
    kicks: int
    died: Time | None = None


class ErrorView(View):
    """The text of the last error of a job; left out if it has none."""

    error: str | None = None


class JobResultView(BodyView):
    """The result of a job that has ended."""


async def get(caller: Calling, number: JobNumber) -> Response:
    """Look at a job, even one that has ended, as long as its queue keeps it."""
    job = await caller.read(caller.client.ended(await caller.id(number), headers=True, life=True))
    if job is None:
        raise job_not_found()
    return answer(peeked_view(job, caller.client.id_text))


async def change(caller: Calling, number: JobNumber, what: Change, key: IdempotencyKey = None) -> Response:
    """Change a job that is not running."""
    return changed_answer(await caller.execute(key, "change", Number(await caller.id(number)), **change_options(what)))


async def delete(
    caller: Calling, number: JobNumber,
    untaken: Annotated[bool, Query(description="Leave a running job alone: 409.")] = False,
    key: IdempotencyKey = None,
) -> Response:
    """Remove a job in any state, even one that a worker is running."""
    return finished_answer(await caller.execute(key, "delete", Number(await caller.id(number)), untaken=untaken))


async def wait(caller: Calling, number: JobNumber, wait: Wait = WAIT_S) -> Response:
    """Wait until a job has ended or was given up; the state is `unfinished` if it has not ended in that time."""
    return await await_end(caller, Number(await caller.id(number)), wait)


async def kick(caller: Calling, number: JobNumber, key: IdempotencyKey = None) -> Response:
    """Make a buried, dead or delayed job ready."""
    return counted_answer(await caller.execute(key, "kick_job", Number(await caller.id(number))))


async def stat(caller: Calling, number: JobNumber) -> Response:
    """Return the state and the history of a job."""
    found = (await caller.client.job_stat(await caller.id(number)))._asdict()
    created, died = times.shown(found.pop("created")), times.shown(found.pop("died"))
    return answer(StatView(**given(**found, created=created, died=died)))


async def result(caller: Calling, number: JobNumber) -> Response:
    """Return the result of a job that has ended, as long as its queue keeps it."""
    data = await caller.read(caller.client.job_result(await caller.id(number)))
    return answer(JobResultView(**bodies.shown(data, None)))


async def error(caller: Calling, number: JobNumber) -> Response:
    """Return the text of the last error of a job."""
    return await error_of(caller, Number(await caller.id(number)))


async def retry(caller: Calling, number: JobNumber) -> Response:
    """Make a job that has ended ready again, as it was put."""
    return counted_answer(await caller.client.retry_ended(await caller.id(number)))


async def forget(caller: Calling, number: JobNumber) -> Response:
    """Remove the record of a job that has ended."""
    await caller.client.delete_ended(await caller.id(number))
    return changed_answer()


async def await_end(caller: Caller, job: Number | Key, wait_s: float) -> Response:
    """Return the answer to a wait for the end of a job."""
    ended: Awaited | None = await caller.unless_gone(
        caller.client.await_job(job, wait=max(wait_s, LEAST_WAIT_S))
    )
    if ended is None:
        return answer(EndView.model_validate({"state": "unfinished"}))
    return answer(EndView.model_validate({"state": ended.state, **bodies.shown(ended.data, None)}))


async def error_of(caller: Caller, job: Number | Key) -> Response:
    """Return the answer to a request for the error of a job. Raises JobNotFound."""
    text = await caller.client.job_error(job)
    return answer(ErrorView(**given(error=text)))
