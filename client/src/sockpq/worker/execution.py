"""Processes a job: finds its function, calls it, and returns the outcome. For children of every kind."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from time import monotonic
from typing import Any, NamedTuple, Protocol, TypeVar

from sockpq.model import Meta
from sockpq.worker.app import App
from sockpq.worker.current import CANCELLATION, CURRENT, Cancellation
from sockpq.worker.envelope import error_body, opened, result_body, returned_body
from sockpq.worker.errors import BadJob, JobCancelled, UnknownTask
from sockpq.worker.flows.own_jobs import POLICY, own_function
from sockpq.worker.outcome import Outcome, after_error, after_loss
from sockpq.worker.parents import aresults, beside, results
from sockpq.worker.policy import Policy
from sockpq.worker.signature import Parents

LOG = logging.getLogger("sockpq.worker")


class GivenJob(Protocol):
    """The part of a received job that is used here."""

    @property
    def id(self) -> int:
        """The number of this hand-out."""
        ...

    @property
    def queue(self) -> str:
        """The queue from which it was taken."""
        ...

    @property
    def data(self) -> bytes:
        """The body of the job, undecoded."""
        ...

    @property
    def item(self) -> str | None:
        """The item to which it belongs."""
        ...

    @property
    def meta(self) -> Meta | None:
        """The job's metadata, such as its key and attempt."""
        ...

    @property
    def headers(self) -> dict[str, str] | None:
        """Its headers, None where the server has none."""
        ...


G = TypeVar("G", bound=GivenJob)


class Work(NamedTuple):
    """The work for a job. `args`: None: the function gets the job itself. `reply`: a caller waits for the result."""

    function: Callable[..., Any]
    args: list[Any] | None
    kwargs: dict[str, Any]
    policy: Policy
    reply: bool = False
    parents: Parents | None = None

    def call(self, held: Any, results: Sequence[Any] = ()) -> Any:
        """Call the function; `held` is the job as the function sees it, `results` come from its parents."""
        return self.function(held) if self.args is None else self.function(*results, *self.args, **self.kwargs)


def find(app: App, job: GivenJob) -> Work:
    """Return the function to call for this job. Raises BadJob, UnknownTask."""
    handler = app.handlers.get(job.queue)
    if handler:
        return Work(handler.function, None, {}, handler.policy)
    envelope = opened(job.data, app.codec)
    own = own_function(app, envelope.task)
    if own:
        return Work(own, envelope.args, envelope.kwargs, POLICY)
    task = app.tasks.get(envelope.task)
    if task is None:
        raise UnknownTask(f"there is no task {envelope.task!r} here; there are: {', '.join(app.tasks) or 'none'}")
    reply = envelope.reply and bool(job.item)
    parents = beside(envelope.parents, job.id) if envelope.parents else None
    return Work(task.function, envelope.args, envelope.kwargs, task.policy, reply, parents)


def policy_for(app: App, job: GivenJob) -> Policy:
    """Return the policy for this job."""
    try:
        return find(app, job).policy
    except (BadJob, UnknownTask):
        return app.policy_of(job.queue)


def run(
    app: App, job: G, hold: Callable[[G, Work], Any], await_: Callable[[Any], Any],
    cancellation: Cancellation | None = None,
) -> Outcome:
    """Process a job in this thread.

    `hold` creates the job that the function sees; `await_` runs the coroutine of an async function to its end.
    """
    begun = monotonic()
    work: Work | None = None
    held: Any = None
    cancellation = cancellation or Cancellation()
    token, other = CURRENT.set(None), CANCELLATION.set(cancellation)
    try:
        work = find(app, job)
        given = hold(job, work)
        cancellation.check()            # before it is begun: then there is nothing to clean up
        held = given
        CURRENT.set(held)
        with span(app, job):
            value = work.call(held, results(app.client, work.parents, app.codec) if work.parents else ())
            if inspect.isawaitable(value):
                value = await_(value)
        outcome = _returned(app, held, work, value)
    except BaseException as error:      # SystemExit as well: a task must not end its worker
        outcome = _raised(app, job, held, work, error)
    try:
        if cancellation.wanted:
            outcome = Outcome("cancelled")
            value = _cleaned_up(held, work, cancellation)
            if inspect.isawaitable(value):
                await_(value)
    except BaseException:
        LOG.exception("on_cancel has failed")
    finally:
        CURRENT.reset(token)
        CANCELLATION.reset(other)
    return outcome._replace(run_s=monotonic() - begun)


async def arun(
    app: App, job: G, hold: Callable[[G, Work], Awaitable[Any]],
    call: Callable[[Callable[[], Any], bool], Awaitable[Any]], cancellation: Cancellation,
) -> Outcome:
    """Run a job in a task of an event loop.

    `call` calls a function, which is async or not, and awaits its value.
    """
    begun = monotonic()
    work: Work | None = None
    held: Any = None
    token, other = CURRENT.set(None), CANCELLATION.set(cancellation)
    try:
        work = find(app, job)
        given = await hold(job, work)
        cancellation.check()            # before it is begun: then there is nothing to clean up
        held = given
        CURRENT.set(held)
        with span(app, job):
            parents = await aresults(app.async_client, work.parents, app.codec) if work.parents else ()
            value = await call(partial(work.call, held, parents), inspect.iscoroutinefunction(work.function))
        outcome = _returned(app, held, work, value)
    except (Exception, JobCancelled) as error:
        outcome = _raised(app, job, held, work, error)
    except asyncio.CancelledError:
        if not cancellation.wanted:
            raise
        outcome = Outcome("cancelled")
    try:
        if cancellation.wanted:
            outcome = Outcome("cancelled")
            value = _cleaned_up(held, work, cancellation)
            if inspect.isawaitable(value):
                await value
    except Exception:
        LOG.exception("on_cancel has failed")
    finally:
        CURRENT.reset(token)
        CANCELLATION.reset(other)
    return outcome._replace(run_s=monotonic() - begun)


def span(app: App, job: GivenJob) -> AbstractContextManager[None]:
    """Return the span of the work on this job, in the trace of its producer, if the app's client traces."""
    tracing = app.tracing
    return tracing.work(job.queue, job.headers) if tracing else nullcontext()


def attempt_of(job: GivenJob) -> int:
    """Return the number of this attempt: 1, 2, .."""
    return max(job.meta.attempt, 1) if job.meta else 1


def _cleaned_up(held: Any, work: Work | None, cancellation: Cancellation) -> Any:
    """Call the task's `on_cancel` for a cancelled job, and return its value."""
    cancellation.interrupted = True         # it may use the library
    if work is None or work.policy.on_cancel is None or held is None:
        return None
    return work.policy.on_cancel(held)


def _returned(app: App, held: Any, work: Work, value: Any) -> Outcome:
    if held._ended:
        return Outcome("ended")
    return Outcome(
        "done", result=result_body(app.codec, value) if work.reply else None,
        returned=returned_body(app.codec, value) if work.policy.result else None,
    )


def _raised(app: App, job: GivenJob, held: Any, work: Work | None, error: BaseException) -> Outcome:
    policy = work.policy if work else app.policy_of(job.queue)
    outcome = after_error(error, attempt_of(job), policy)
    if held is not None and held._ended:
        return Outcome("ended", failure=outcome.failure)
    return with_error_result(app, outcome, work is not None and work.reply)


def with_error_result(app: App, outcome: Outcome, reply: bool) -> Outcome:
    """Return the outcome of a job that is given up, with a result for a waiting caller."""
    if not reply or outcome.kind != "dead" or outcome.failure is None:
        return outcome
    return outcome._replace(result=error_body(app.codec, outcome.failure.kind, outcome.failure.message))


def lost(app: App, job: GivenJob, kind: str, message: str) -> Outcome:
    """Return the outcome of a job whose child has ended during it."""
    outcome = after_loss(kind, message, attempt_of(job), policy_for(app, job))
    if outcome.kind != "dead":
        return outcome
    try:
        return with_error_result(app, outcome, find(app, job).reply)
    except (BadJob, UnknownTask):
        return outcome
