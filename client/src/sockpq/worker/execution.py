"""A job is worked on: finds its function, calls it, and says what becomes of the job. For children of every kind."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from time import monotonic
from typing import Any, NamedTuple, Protocol

from sockpq.model import Meta
from sockpq.worker.app import App
from sockpq.worker.current import CURRENT
from sockpq.worker.envelope import Envelope, error_body, opened, result_body
from sockpq.worker.errors import BadJob, UnknownTask
from sockpq.worker.outcome import Outcome, after_error
from sockpq.worker.policy import Policy


class GivenJob(Protocol):
    """What is needed of a sockpq.Job, of either client."""

    id: int
    queue: str
    data: bytes
    item: str | None
    _ended: bool

    @property
    def meta(self) -> Meta | None:
        """Its key and its attempt."""
        ...


class Work(NamedTuple):
    """A function with the arguments for one job. `reply`: somebody waits for what it returns."""

    function: Callable[..., Any]
    args: list[Any]
    kwargs: dict[str, Any]
    policy: Policy
    reply: bool = False


def find(app: App, job: GivenJob) -> Work:
    """What is to be called for this job; raises BadJob, UnknownTask."""
    handler = app.handlers.get(job.queue)
    if handler:
        return Work(handler.function, [job], {}, handler.policy)
    envelope = opened(job.data, app.codec)
    task = app.tasks.get(envelope.task)
    if task is None:
        raise UnknownTask(f"there is no task {envelope.task!r} here; there are: {', '.join(app.tasks) or 'none'}")
    return Work(task.function, envelope.args, envelope.kwargs, task.policy, envelope.reply and bool(job.item))


def run(app: App, job: GivenJob, await_: Callable[[Any], Any]) -> Outcome:
    """Work on a job in this thread; `await_` runs what an async function returns to its end."""
    begun = monotonic()
    token = CURRENT.set(job)
    work: Work | None = None
    try:
        work = find(app, job)
        value = work.function(*work.args, **work.kwargs)
        if inspect.isawaitable(value):
            value = await_(value)
        outcome = _returned(app, job, work, value)
    except BaseException as error:      # SystemExit as well: a task must not end its worker
        outcome = _raised(app, job, work, error)
    finally:
        CURRENT.reset(token)
    return outcome._replace(run_s=monotonic() - begun)


async def arun(app: App, job: GivenJob, call: Callable[[Work], Any]) -> Outcome:
    """The same in a task of an event loop. `call` begins the work: what it returns is awaited."""
    begun = monotonic()
    token = CURRENT.set(job)
    work: Work | None = None
    try:
        work = find(app, job)
        outcome = _returned(app, job, work, await call(work))
    except Exception as error:
        outcome = _raised(app, job, work, error)
    finally:
        CURRENT.reset(token)
    return outcome._replace(run_s=monotonic() - begun)


def attempt_of(job: GivenJob) -> int:
    """Which attempt this is: 1, 2, .."""
    return max(job.meta.attempt, 1) if job.meta else 1


def replying(app: App, data: bytes) -> Envelope | None:
    """What the body says if somebody waits for the result of this job."""
    try:
        envelope = opened(data, app.codec)
    except BadJob:
        return None
    return envelope if envelope.reply else None


def _returned(app: App, job: GivenJob, work: Work, value: Any) -> Outcome:
    if job._ended:
        return Outcome("ended")
    return Outcome("done", result=result_body(app.codec, value) if work.reply else None)


def _raised(app: App, job: GivenJob, work: Work | None, error: BaseException) -> Outcome:
    policy = work.policy if work else app.policy_of(job.queue)
    outcome = after_error(error, attempt_of(job), policy)
    if job._ended:
        return Outcome("ended", failure=outcome.failure)
    if outcome.kind == "dead" and work and work.reply and outcome.failure:
        return outcome._replace(result=error_body(app.codec, outcome.failure.kind, outcome.failure.message))
    return outcome
