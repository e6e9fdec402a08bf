"""Taking jobs, from one queue, from several or from any, and one job by its number."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

from pydantic import Field
from sockpq import SockpqError
from sockpq.aio import Job
from starlette.responses import Response

from sockpq_http.exchange.caller import Caller, Calling, answer
from sockpq_http.exchange.views import JobsView, taken_view
from sockpq_http.limits import TAKEN_JOBS_MAX, WAIT_S_MAX
from sockpq_http.values.model import Model
from sockpq_http.values.names import JobNumber, Queue
from sockpq_http.values.times import Span

Then = Literal["later", "done", "dead"]
Policy = Literal["random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair", "place"]
LEASE_S = 60.0


class Lease(Model):
    """The lease of a job that is taken: when it ends before the job is done, somebody else gets it."""

    lease: Span = Field(default=LEASE_S, gt=0, description="How long the job stays with its taker.")
    then: Then | None = Field(default=None, description="At the end of the lease: back, removed, or given up.")


class Take(Lease):
    """The number of jobs to take, and the wait for the first."""

    count: int = Field(default=1, ge=1, le=TAKEN_JOBS_MAX)
    wait: Span = Field(default=0.0, le=WAIT_S_MAX, description="How long to wait until there is one.")
    until_done: bool = Field(default=False, description="Wait only while there is unfinished work in the queues.")
    item: str | None = Field(default=None, description="Only jobs of this item.")


class TakeOfSeveral(Take):
    """The number of jobs to take from several queues, or from any, and the wait for the first."""

    queues: list[str] | None = Field(default=None, min_length=1, max_length=1000, description="None: any queue.")
    by: Policy | None = Field(default=None, description="How the queue is chosen.")


RATE: dict[int | str, dict[str, Any]] = {200: {"headers": {"RateLimit-Policy": {
    "description": "Of a queue with a rate: its name, or its pulse; q hand-outs in w seconds.",
    "schema": {"type": "string"},
}}}}


async def take(caller: Calling, queue: Queue, wanted: Take | None = None) -> Response:
    """Take jobs from a queue; the list is empty if there is none in time.

    If the client hangs up while it waits, the jobs that it would have got go back to their places.
    """
    return await _take(caller, [queue], wanted or Take(), None)


async def take_of_several(caller: Calling, wanted: TakeOfSeveral | None = None) -> Response:
    """Take jobs from several queues, or from any; the list is empty if there is none in time."""
    wanted = wanted or TakeOfSeveral()
    return await _take(caller, wanted.queues, wanted, wanted.by)


async def take_number(caller: Calling, number: JobNumber, wanted: Lease | None = None) -> Response:
    """Take the job with this number, whether it is ready, delayed or buried."""
    wanted = wanted or Lease()
    job = await caller.read(caller.client.get_number(
        await caller.id(number), wanted.lease, wanted.then, meta=True, headers=True
    ))
    return await _handed(caller, [job])


async def _take(caller: Caller, queues: list[str] | None, wanted: Take, policy: Policy | None) -> Response:
    get = partial(
        caller.client.get_many, wanted.count, queues, expire=wanted.lease, then=wanted.then, item=wanted.item,
        meta=True, headers=True, policy=policy,
    )
    jobs = await caller.read(get(block=False))
    if not jobs and wanted.wait:
        block: Literal["until_done", True] = "until_done" if wanted.until_done else True
        jobs = await caller.unless_gone(get(block=block, wait=wanted.wait)) or []
    return await _handed(caller, jobs, await caller.rate_header(queues[0]) if queues and len(queues) == 1 else {})


async def _handed(caller: Caller, jobs: list[Job], headers: Mapping[str, str] = MappingProxyType({})) -> Response:
    """Return the answer with these jobs; they go back to their places if nobody is there to read it."""
    if jobs and await caller.is_gone():
        with suppress(SockpqError):         # then their leases end
            await caller.client.later_many(jobs, first=True)
        jobs = []
    return answer(JobsView(jobs=[taken_view(job, caller.client.id_text) for job in jobs]), headers=headers)
