"""Queues: made, configured, paused, emptied, moved, counted and looked into."""

from __future__ import annotations

from functools import partial
from operator import attrgetter
from typing import Annotated, Any, Literal

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from sockpq_http.exchange.caller import Calling, answer, given
from sockpq_http.exchange.views import CountView, JobsView, peeked_view
from sockpq_http.limits import SEEN_JOBS_MAX
from sockpq_http.problems.errors import problem_of
from sockpq_http.problems.problem import Problem, ProblemView
from sockpq_http.routes.running import changed_answer
from sockpq_http.routes.takes import Then
from sockpq_http.values.ids import Seq
from sockpq_http.values.model import Model, View
from sockpq_http.values.names import Queue
from sockpq_http.values.patterns import NAME
from sockpq_http.values.times import Span

LIMIT = Field(default=None, ge=0, le=2**31 - 1)
State = Literal["ready", "delayed", "running", "dead", "buried", "ended"]


class QueueSettings(Model):
    """Settings of a queue; one that is not given stays as it is, 0 removes a limit."""

    expire: Span | None = Field(default=None, description="The lease of takes that name none.")
    then: Then | None = Field(default=None, description="What happens at its end.")
    order: Literal["fifo", "time"] | None = None
    tries: int | None = Field(default=None, ge=0, le=1_000_000)
    dead: str | None = Field(default=None, description="The dead-letter queue; by default the name and `_dead`.")
    weight: int | None = LIMIT
    limit: int | None = Field(default=None, ge=0, le=2**31 - 1, description="How many of its jobs may run at a time.")
    item_limit: int | None = LIMIT
    capacity: int | None = Field(default=None, ge=0, le=2**31 - 1, description="How many jobs may wait.")
    data_bytes_max: int | None = LIMIT
    batch: int | None = LIMIT
    portion: int | None = LIMIT
    keep: Span | None = None
    ttl: Span | None = None
    idle: Span | None = None
    overflow: Literal["refuse", "drop_oldest"] | None = None
    alarm: int | None = LIMIT
    sched: Literal["fifo", "fair", "groups"] | None = None
    group_limit: int | None = LIMIT
    group_rate: int | None = LIMIT
    group_per: Span | None = None
    group_by: str | None = Field(default=None, description="user, item, off, or head:NAME for a header.")
    group_order: bool | None = None
    rate: int | None = Field(default=None, ge=0, le=2**31 - 1, description="Hand-outs in `per` seconds.")
    per: Span | None = None
    spread: bool | None = None
    pulse: str | None = None
    retain: Span | None = Field(default=None, description="How long its jobs with numbers are kept after their end.")
    retain_max: int | None = LIMIT
    retain_bytes: int | None = LIMIT
    numbered: bool | None = None
    backoff: list[Span] | None = Field(default=None, min_length=2, max_length=2, description="First and longest pause.")
    error_bytes: int | None = LIMIT
    dedup_max: int | None = LIMIT

    def options(self) -> dict[str, Any]:
        """Return the arguments of queue_create() and queue_config()."""
        names = [name for name in QueueSettings.model_fields if getattr(self, name) is not None]
        found: dict[str, Any] = {name: getattr(self, name) for name in names}
        if self.backoff is not None:
            found["backoff"] = tuple(self.backoff)
        if self.group_by is not None and self.group_by.startswith("head:"):
            found["group_by"] = ("head", self.group_by.removeprefix("head:"))
        return found


class NewQueue(QueueSettings):
    """A queue with its settings."""

    name: str = Field(pattern=NAME)


class Pause(Model):
    """The direction in which a pause stops jobs."""

    direction: Literal["in", "out", "all"] = Field(default="all", description="Puts, takes, or both.")
    seconds: Span | None = Field(default=None, description="With `out`: for this long.")


class Purge(Model):
    """The jobs to remove: `own` are all of the queue itself, running ones too; `all` all but running ones."""

    state: Literal["ready", "delayed", "running", "dead", "buried", "all", "own", "ended"]


class MoveQueue(Model):
    """The queue to which ready jobs go, and which of them."""

    to: str = Field(pattern=NAME)
    count: int | None = Field(default=None, ge=1, le=2**31 - 1, description="None: all.")
    died: str | None = Field(default=None, description="Only the dead ones that came from this queue.")
    place: Seq | None = Field(default=None, description="Only the job at this place.")


class Kick(Model):
    """The number of jobs to bring back."""

    count: int = Field(default=1, ge=1, le=2**31 - 1)
    here: bool = Field(default=False, description="The queue's own buried jobs, or if it has none its delayed ones.")


class QueueView(View):
    """A queue with the number of its jobs in each state."""

    name: str
    ready: int
    delayed: int
    running: int
    dead: int
    buried: int
    cluster: str | None = None


class QueuesView(View):
    """A list of queues."""

    queues: list[QueueView]


class SettingsView(View):
    """All settings, in the words of the protocol in lower case."""

    settings: dict[str, str]


class CountersView(View):
    """The counters of a queue, in the words of the protocol in lower case."""

    counters: dict[str, int]


class MovedView(View):
    """The number of jobs that were moved, and why the next one was not."""

    jobs: int
    problem: ProblemView | None = None


class TotalsView(View):
    """The numbers of waiting and of running jobs."""

    queues: int
    priorities: int
    jobs: int
    running: int


Prefix = Annotated[str, Query(max_length=255, description="Only names that begin so.")]


async def list_(caller: Calling, prefix: Prefix = "") -> Response:
    """List the queues, in the order of their names."""
    return await caller.listed(
        "queues", partial(caller.client.queues, prefix), lambda one: QueueView(**given(**one._asdict())),
        key=attrgetter("name"),
    )


async def create(caller: Calling, queue: NewQueue) -> Response:
    """Create a queue; 409 when it exists."""
    await caller.client.queue_create(queue.name, **queue.options())
    return answer(SettingsView(settings=await caller.client.queue_config(queue.name)), 201)


async def stats(caller: Calling, queue: Queue) -> Response:
    """Return the counters of a queue."""
    return answer(CountersView(counters=await caller.client.queue_stat(queue)))


async def config(caller: Calling, queue: Queue) -> Response:
    """Return the settings of a queue."""
    return answer(SettingsView(settings=await caller.client.queue_config(queue)))


async def configure(caller: Calling, queue: Queue, settings: QueueSettings) -> Response:
    """Change settings of a queue, which need not exist."""
    options = settings.options()
    if not options:
        raise Problem(400, "give a setting to change", "not-valid")
    return answer(SettingsView(settings=await caller.client.queue_config(queue, **options)))


async def delete(
    caller: Calling, queue: Queue,
    force: Annotated[bool, Query(description="With its jobs, running ones too.")] = False,
    leave: Annotated[bool, Query(description="With `force`: its dead jobs stay.")] = False,
) -> Response:
    """Remove a queue with its settings; 409 when it has jobs, unless `force`."""
    await caller.client.queue_delete(queue, force=force, leave=leave)
    return changed_answer()


async def pause(caller: Calling, queue: Queue, how: Pause | None = None) -> Response:
    """Let a queue accept no jobs, hand out none, or both."""
    how = how or Pause()
    await caller.client.queue_pause(queue, how.direction, seconds=how.seconds)
    return changed_answer()


async def resume(caller: Calling, queue: Queue) -> Response:
    """End the pause of a queue."""
    await caller.client.queue_resume(queue)
    return changed_answer()


async def purge(caller: Calling, queue: Queue, which: Purge) -> Response:
    """Remove the jobs of a queue that are in this state."""
    return answer(CountView(count=await caller.client.queue_purge(queue, which.state)))


async def move(caller: Calling, queue: Queue, where: MoveQueue) -> Response:
    """Move the ready jobs of a queue to the end of another one, in their order."""
    moved = await caller.client.queue_move(
        queue, where.to, where.count, died=where.died, seq=None if where.place is None else int(where.place)
    )
    if moved.refusal is None:
        return answer(MovedView(jobs=moved.jobs))
    return answer(MovedView(jobs=moved.jobs, problem=ProblemView(**problem_of(moved.refusal).fields())))


async def kick(caller: Calling, queue: Queue, how: Kick | None = None) -> Response:
    """Put jobs that were given up in this queue back into it."""
    how = how or Kick()
    return answer(CountView(count=await caller.client.kick(queue, how.count, here=how.here)))


async def jobs(
    caller: Calling, queue: Queue, state: State = "ready",
    count: Annotated[int, Query(ge=1, le=SEEN_JOBS_MAX)] = 10,
) -> Response:
    """Look at the first jobs of a queue in this state, with their places; of ended ones, the last."""
    if state == "ended":
        found = await caller.read(caller.client.ended_jobs(queue, count, headers=True))
    else:
        found = await caller.read(caller.client.peek_queue(queue, state, count, places=True, headers=True))
    return answer(JobsView(jobs=[peeked_view(job, caller.client.id_text) for job in found]))


async def totals(caller: Calling, queue: Annotated[str | None, Query(pattern=NAME)] = None) -> Response:
    """Count the waiting and running jobs, of all queues or of one."""
    return answer(TotalsView(**(await caller.client.total(queue))._asdict()))


