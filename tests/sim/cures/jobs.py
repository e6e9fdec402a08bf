"""Cures for jobs with time, keys and transactions, each taken out of the product."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from sockpqd.core import (
    Accepted,
    DeleteQueue,
    Due,
    End,
    Finished,
    How,
    PutWith,
    Reply,
    Results,
    Spread,
    ToQueues,
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
from tests.sim.cures.cure import TABLE, Cure


def hand_out_before_the_time(patch: pytest.MonkeyPatch) -> None:
    """Halve each delay of a job."""
    real = activate.moment

    def sooner(when: Due) -> Due:
        return replace(when, delay_ms=when.delay_ms // 2)
    patch.setattr(activate, "moment", lambda state, when: real(state, sooner(when)))


def leave_half_a_transaction(patch: pytest.MonkeyPatch) -> None:
    """Keep what was executed of a transaction before one of its commands was refused."""
    patch.setattr(Undo, "back", Undo.commit)


def forget_keys(patch: pytest.MonkeyPatch) -> None:
    """Let no queue remember its keys."""
    patch.setattr(state, "_keys", lambda queue: {})
    patch.setattr(state, "_drop_key", lambda queue, key: None)


def promise_the_next_time(patch: pytest.MonkeyPatch) -> None:
    """Answer DONE of a periodic job with its next time, and never activate it."""
    def rearm(state: State, job: RunningJob, extras: Extras, every_ms: int) -> int:
        assert job.at_ms is not None
        state.close(job.queue, job.item)
        periods = -((job.at_ms - state.clock_ms - 1) // every_ms) if job.at_ms <= state.clock_ms else 0
        return job.at_ms + periods * every_ms
    patch.setattr(complete, "_rearm", rearm)


def end_only_the_first(patch: pytest.MonkeyPatch) -> None:
    """Finish one of several jobs on DONE, and report all as finished."""
    real = EXECUTE[End]

    def end(state: State, operation: End, seed: int) -> Reply:
        if operation.how is not How.DONE or isinstance(operation.ids, int):
            return real(state, operation, seed)
        reply: Any = real(state, replace(operation, ids=operation.ids[:1]), seed)
        return Results((*reply.replies, *[Finished()] * (len(operation.ids) - 1)))
    requested: dict[Any, Any] = REQUESTED
    patch.setitem(TABLE, End, end)
    patch.setitem(requested, End, end)


def leave_out_a_copy(patch: pytest.MonkeyPatch) -> None:
    """Omit one of the queues of a PUT, and report all."""
    real = EXECUTE[PutWith]

    def put_with(state: State, operation: PutWith, seed: int) -> Reply:
        targets = operation.targets
        if not isinstance(targets, ToQueues):
            return real(state, operation, seed)
        reply = real(state, replace(operation, targets=ToQueues(targets.queues[:1])), seed)
        return Spread(len(set(targets.queues))) if isinstance(reply, Spread) else reply
    requested: dict[Any, Any] = REQUESTED
    patch.setitem(TABLE, PutWith, put_with)
    patch.setitem(requested, PutWith, put_with)


def delete_a_queue_in_use(patch: pytest.MonkeyPatch) -> None:
    """Delete a queue when a node reports it as idle, even if it was used since."""
    real = TABLE[DeleteQueue]

    def expire(state: State, operation: DeleteQueue, seed: int) -> Reply:
        if operation.idle_since_ms is None:
            return real(state, operation, seed)
        if operation.queue in state.queues.expiring:
            remove_queue(state, operation.queue, limits.PORTION_MAX)
            state.events.tell("IDLE", operation.queue)
        return Accepted()
    patch.setitem(TABLE, DeleteQueue, expire)


def sleep_on(patch: pytest.MonkeyPatch) -> None:
    """Let a leader propose no Tick when jobs become active."""
    patch.setattr(Delays, "next_due_ms", lambda self, clock_ms: None)


EXTENDED: dict[str, Any] = {"nodes": 3, "clones": 0.0, "extended": 0.6}

PASSING: dict[str, Any] = {**EXTENDED, "extended": 0.8, "passing": True}

CURES = (
    Cure(hand_out_before_the_time, EXTENDED, red=13),
    Cure(leave_half_a_transaction, EXTENDED, red=12),
    Cure(forget_keys, EXTENDED, red=1),
    Cure(promise_the_next_time, EXTENDED, red=3),
    Cure(end_only_the_first, EXTENDED, red=0),
    Cure(leave_out_a_copy, PASSING, red=0),
    Cure(delete_a_queue_in_use, PASSING, red=3),
    Cure(sleep_on, EXTENDED, red=0),
)
