"""Searching for jobs by their properties."""

from __future__ import annotations

from typing import Annotated, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from sockpq_http.exchange.caller import Caller, Calling, answer
from sockpq_http.exchange.views import JobView, found_view
from sockpq_http.limits import FOUND_JOBS_MAX
from sockpq_http.problems.problem import Problem
from sockpq_http.values.model import Model, View
from sockpq_http.values.patterns import NAME
from sockpq_http.values.times import MomentText

State = Literal["ready", "delayed", "running", "dead", "buried", "done", "cancelled", "expired"]


class Search(Model):
    """The properties that a job must have, all of them, to be found."""

    queue: list[Annotated[str, Field(pattern=NAME)]] = Field(
        default=[], max_length=1000, description="None: all queues."
    )
    state: list[State] = Field(default=[], max_length=8, description="None: all but those that have ended.")
    header: str | None = Field(default=None, max_length=1100, description="A header and its value: `task:welcome`.")
    key: str | None = Field(default=None, max_length=128, description="The beginning of the key.")
    item: str | None = Field(default=None, max_length=255)
    group: str | None = Field(default=None, max_length=255)
    reason: str | None = Field(default=None, max_length=64)
    since: MomentText | None = None
    until: MomentText | None = None
    limit: int = Field(default=100, ge=1, le=FOUND_JOBS_MAX)


class FoundView(View):
    """The jobs that were found, without their bodies; `more`: the limit has left others out."""

    jobs: list[JobView]
    more: bool


async def find(caller: Calling, search: Annotated[Search, Query()]) -> Response:
    """Find jobs by queue, state, header, key, item, group, reason and time."""
    found = await caller.unless_gone(_find(caller, search))
    return answer(found or FoundView(jobs=[], more=True))


async def _find(caller: Caller, search: Search) -> FoundView:
    header = None
    if search.header is not None:
        name, colon, value = search.header.partition(":")
        if not colon:
            raise Problem(400, "header is a name and a value with a colon between them", "not-valid")
        header = (name.lower(), value)
    jobs: list[JobView] = []
    async for job in caller.client.find(
        search.queue or None, state=search.state or None, header=header, key=search.key, item=search.item,
        group=search.group, reason=search.reason, since=search.since, until=search.until,
        count=min(search.limit, 1000),
    ):
        if len(jobs) == search.limit:
            return FoundView(jobs=jobs, more=True)
        jobs.append(found_view(job, caller.client.id_text))
    return FoundView(jobs=jobs, more=False)
