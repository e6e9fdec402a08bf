"""What makes jobs with time, keys and transactions keep their promises, taken out of product and model alike.

So it is not the comparison of the two that goes red, but the account of the jobs (oracles/job_replies.py).
"""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Accepted,
    Due,
    End,
    ExpireQueue,
    Finished,
    How,
    PutWith,
    Reply,
    Results,
    Spread,
    ToQueues,
    ToTopic,
    Touch,
    limits,
    state,
)
from sockpqd.core.handlers.dispatch import EXECUTE, REQUESTED
from sockpqd.core.rules import activate, complete
from sockpqd.core.rules.remove_queue import remove_queue
from sockpqd.core.state import State
from sockpqd.core.store.delayed import Delays
from sockpqd.core.store.job import Extras, RunningJob
from sockpqd.core.undo import Undo
from tests.core.model.jobs import ModelJob
from tests.core.model.model import Model
from tests.sim.cures.cure import TABLE, Cure
from tests.sim.oracles import reference_model as reference


def hand_out_before_the_time(patch: pytest.MonkeyPatch) -> None:
    """A delay is half as long as was asked for."""
    real, model = activate.moment, Model.time_of

    def sooner(when: Due) -> Due:
        return replace(when, delay_ms=when.delay_ms // 2)
    patch.setattr(activate, "moment", lambda state, when: real(state, sooner(when)))
    patch.setattr(Model, "time_of", lambda self, when: None if when is None else model(self, sooner(when)))


def leave_half_a_transaction(patch: pytest.MonkeyPatch) -> None:
    """What was executed of a transaction before one of its commands was refused stays so."""
    patch.setattr(Undo, "back", Undo.commit)
    patch.setattr(reference, "jobs_of", lambda model: {})


def forget_keys(patch: pytest.MonkeyPatch) -> None:
    """Nobody knows which keys there are."""
    patch.setattr(state, "_keys", lambda queue: {})
    patch.setattr(state, "_drop_key", lambda queue, key: None)
    patch.setattr(Model, "holder", lambda self, queue, key: None)


def promise_the_next_time(patch: pytest.MonkeyPatch) -> None:
    """DONE of a periodic job tells when it comes again, and it does not."""
    model = Model.done

    def rearm(state: State, job: RunningJob, extras: Extras, every_ms: int) -> int:
        assert job.at_ms is not None
        state.close(job.queue, job.item)
        periods = -((job.at_ms - state.clock_ms - 1) // every_ms) if job.at_ms <= state.clock_ms else 0
        return job.at_ms + periods * every_ms

    def done(self: Model, job: ModelJob, last: bool = False) -> int | None:
        next_ms = model(self, job, last)
        if next_ms is not None:
            self.remove(job)
        return next_ms
    patch.setattr(complete, "_rearm", rearm)
    patch.setattr(Model, "done", done)


def end_only_the_first(patch: pytest.MonkeyPatch) -> None:
    """DONE of several jobs finishes one, and says that it has finished all."""
    real, model = EXECUTE[End], Model.on_many

    def end(state: State, operation: End, seed: int) -> Reply:
        if operation.how is not How.DONE or isinstance(operation.ids, int):
            return real(state, operation, seed)
        return _all(real(state, replace(operation, ids=operation.ids[:1]), seed), len(operation.ids))

    def as_well(self: Model, operation: End | Touch) -> Reply:
        if isinstance(operation, Touch) or operation.how is not How.DONE or isinstance(operation.ids, int):
            return model(self, operation)
        return _all(model(self, replace(operation, ids=operation.ids[:1])), len(operation.ids))
    requested: dict[Any, Any] = REQUESTED
    patch.setitem(TABLE, End, end)
    patch.setitem(requested, End, end)
    patch.setattr(Model, "on_many", as_well)


def _all(reply: Any, count: int) -> Reply:
    return Results((*reply.replies, *[Finished()] * (count - 1)))


def leave_out_a_copy(patch: pytest.MonkeyPatch) -> None:
    """A PUT into several queues forgets one of them, and says that it has not."""
    real, model = EXECUTE[PutWith], Model.spread

    def put_with(state: State, operation: PutWith, seed: int) -> Reply:
        targets = operation.targets
        if not isinstance(targets, ToQueues):
            return real(state, operation, seed)
        return _counted(real(state, replace(operation, targets=_fewer(targets)), seed), targets)

    def spread(self: Model, job: PutWith, targets: ToQueues | ToTopic) -> Reply:
        if isinstance(targets, ToTopic):
            return model(self, job, targets)
        return _counted(model(self, job, _fewer(targets)), targets)
    requested: dict[Any, Any] = REQUESTED
    patch.setitem(TABLE, PutWith, put_with)
    patch.setitem(requested, PutWith, put_with)
    patch.setattr(Model, "spread", spread)


def _fewer(targets: ToQueues) -> ToQueues:
    return ToQueues(targets.queues[:1])


def _counted(reply: Reply, targets: ToQueues) -> Reply:
    return Spread(len(set(targets.queues))) if isinstance(reply, Spread) else reply


def delete_a_queue_in_use(patch: pytest.MonkeyPatch) -> None:
    """IDLE is over as soon as somebody says so."""
    def expire(state: State, operation: ExpireQueue, seed: int) -> Reply:
        if operation.queue in state.queues.expiring:
            remove_queue(state, operation.queue, limits.PORTION_MAX)
            state.events.tell("IDLE", operation.queue)
        return Accepted()

    def as_well(self: Model, operation: ExpireQueue) -> Reply:
        if self.settings_of(operation.queue).idle_ms:
            self.delete_all(operation.queue, limits.PORTION_MAX)
            self.tell("IDLE", operation.queue)
        return Accepted()
    patch.setitem(TABLE, ExpireQueue, expire)
    patch.setattr(Model, "_expire", as_well)


def sleep_on(patch: pytest.MonkeyPatch) -> None:
    """A leader proposes no Tick when jobs become active."""
    patch.setattr(Delays, "next_due_ms", lambda self, clock_ms: None)


EXTENDED: dict[str, Any] = {"nodes": 3, "clones": 0.0, "extended": 0.6}

PASSING: dict[str, Any] = {**EXTENDED, "extended": 0.8, "passing": True}

CURES = (
    Cure(hand_out_before_the_time, EXTENDED, red=13),
    Cure(leave_half_a_transaction, EXTENDED, red=1),
    Cure(forget_keys, EXTENDED, red=1),
    Cure(promise_the_next_time, EXTENDED, red=3),
    Cure(end_only_the_first, EXTENDED, red=0),
    Cure(leave_out_a_copy, PASSING, red=0),
    Cure(delete_a_queue_in_use, PASSING, red=21),
    Cure(sleep_on, EXTENDED, red=0),
)
