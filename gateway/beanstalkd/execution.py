"""Executes operations of beanstalkd's clients at the serving leader: checks rights, proposes, and converts replies.

The usual put, reserve and delete of a reserved job take the same path as everything else: the operation is proposed,
and its reply is the result. A Get that finds a job ready claims it and needs no JobWaiter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from sockpqd.beanstalk import U32_MAX, CallFailure, calls
from sockpqd.core import (
    Accepted,
    BadSetting,
    CloseSession,
    DataTooLarge,
    Delete,
    Elsewhere,
    Empty,
    End,
    Finished,
    Get,
    GetWith,
    Handed,
    JobRunning,
    JobView,
    Kick,
    NotFound,
    Number,
    OpenSession,
    Operation,
    PauseQueue,
    PutWith,
    QueueFull,
    QueueNotFound,
    QueuePaused,
    Removed,
    Reply,
    Request,
    Return,
    SessionNotFound,
    SessionOpened,
    StoredNumber,
    Taking,
    Touch,
    TouchSession,
    number_of,
    put_by,
)
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.beanstalkd.call_operations import MS
from sockpqd.gateway.beanstalkd.lookups import find_job, may
from sockpqd.gateway.beanstalkd.remote import RETRY, Outcome, SessionLost
from sockpqd.gateway.beanstalkd.services import NodeServices, Principal
from sockpqd.gateway.protocol.responses import BUSY
from sockpqd.gateway.rights import Rights
from sockpqd.gateway.waiting.job_waiter import JobWaiter, WaitRequest
from sockpqd.gateway.waiting.slots import NoReply

LASTING_S = float(U32_MAX)      # the time of a job that has none
OVERLOADED_S = 0.1              # before an operation that had no turn is proposed again


class OperationExecution:
    """Executes one operation at a time; `report` is called once with its outcome, perhaps before `begin` returns."""

    __slots__ = (
        "_claimed", "_cluster", "_count", "_first", "_operation", "_principal", "_proposed", "_queue", "_reply",
        "_report", "_services", "_wait_ms", "_waiter", "ended",
    )

    def __init__(self, services: NodeServices, principal: Principal, report: Callable[[Outcome], None]) -> None:
        self.ended = False                          # WaitingClient: whether the client waits no more
        self._services = services
        self._cluster = services.cluster
        self._principal = principal
        self._report = report
        self._reply: Callable[[OperationExecution, Any], None] = OperationExecution._done
        self._operation: Any = None                 # without the Request around it; None: nothing is being executed
        self._proposed: Operation | None = None
        self._wait_ms: int | None = 0
        self._first = True                          # nothing of it can have been executed before
        self._claimed: str | None = None            # the queue of the job that a Get in flight will take
        self._waiter: JobWaiter | None = None
        self._queue: str | None = None              # of the job that is being deleted
        self._count = 0                             # of jobs kicked so far

    @property
    def guard(self) -> Guard:
        """See WaitingClient: the rights of the user."""
        return self._principal.guard(self._services)

    def begin(self, operation: Operation, wait_ms: int | None, *, first: bool) -> None:
        """Execute an operation. `wait_ms`, `first`: see RemoteRequest."""
        self.ended = False
        self._proposed, self._wait_ms, self._first = operation, wait_ms, first
        self._operation = inner = operation.operation if type(operation) is Request else operation
        right, state, propose, self._reply = _rule_of(inner)
        if right is not None and self._services.access.required:
            rights = self.guard.rights
            if rights is None or not right(self, inner, rights):
                hidden = rights is not None and _by_number(inner)   # it tells nobody of the jobs of others
                self._end_unlogged(CallFailure.NOT_FOUND if hidden else CallFailure.FORBIDDEN)
                return
        if state is not None:
            failure = state(self, inner)
            if failure is not None:
                self._end_unlogged(failure)
                return
        propose(self)

    def cancel(self) -> None:
        """Stop waiting. A job handed out in the meantime is still reported. A kick ends early."""
        self.ended = True
        waiter = self._waiter
        if waiter is not None and waiter.outcome is None:
            waiter.leave()
            if waiter.outcome is not None:
                self._end(None)

    # ---- rights

    def _may_put(self, put: PutWith, rights: Rights) -> bool:
        return may(rights, "put", put.put.queue)

    def _may_get(self, get: Taking, rights: Rights) -> bool:
        return all(may(rights, "get", queue) for queue in queues_of(get))

    def _may_get_number(self, get: GetWith, rights: Rights) -> bool:
        assert get.number is not None
        queue = self._queue_of(get.number)
        return queue is None or may(rights, "get", queue)

    def _may_end(self, end: End | Touch, rights: Rights) -> bool:
        queue = self._cluster.machine.queue_of(end.id)
        return queue is None or may(rights, "get", queue)

    def _may_change(self, change: Delete | Kick | PauseQueue, rights: Rights) -> bool:
        selector = None if isinstance(change, PauseQueue) else change.selector
        if isinstance(change, Kick | PauseQueue) and selector is None:
            return may(rights, "queue", change.queue)
        queue = self._queue_of(selector.number) if type(selector) is Number else None
        return queue is None or may(rights, "queue", queue)

    def _still_may(self, kick: Kick) -> bool:
        rights = self.guard.rights
        return not self._services.access.required or (rights is not None and self._may_change(kick, rights))

    def _queue_of(self, number: int) -> str | None:
        """Return the queue of a job, also of one that has ended: an entry on its way may bring it back."""
        job = find_job(self._cluster.machine, number)
        return self._cluster.machine.queue_of_ended(number) if job is None else job.queue

    def _numbered(self, get: GetWith) -> JobView | None:
        assert get.number is not None
        return find_job(self._cluster.machine, get.number)

    def _find(self, selector: Any) -> JobView | None:
        return find_job(self._cluster.machine, selector.number) if type(selector) is Number else None

    # ---- refusals by the state

    def _has_room(self, put: PutWith) -> CallFailure | None:
        return CallFailure.OUT_OF_MEMORY if self._cluster.full and self._first else None    # else it may have been put

    def _exists(self, get: GetWith) -> CallFailure | None:
        return CallFailure.NOT_FOUND if self._numbered(get) is None else None

    def _existed(self, change: Delete | Kick) -> CallFailure | None:
        """Return NOT_FOUND for a job that is gone. If an earlier attempt may have removed it, the log must decide."""
        self._count = 0
        if change.selector is None:
            return None
        job = self._find(change.selector)
        self._queue = None if job is None else job.queue
        return CallFailure.NOT_FOUND if job is None and self._first else None

    # ---- proposals

    def _propose(self) -> None:
        assert self._proposed is not None
        self._cluster.propose_for(self, self._proposed, self)

    def _put(self) -> None:
        """Propose a put, and the Get of a client that waits for its job right after it."""
        put, user = self._operation, self._principal.user
        if user is not None and self._cluster.machine.groups_by_user and type(self._proposed) is Request:
            self._proposed = replace(self._proposed, operation=put_by(put, user))
        self._propose()
        if put.when is None:
            self._services.job_waiters.follow(put.put, self)

    def _get(self) -> None:
        if self._first:
            get = self._operation
            queues: Any = get.queues if type(get) is Get else get.get.queues
            self._claimed = self._services.job_waiters.claim_for_get(queues)
        if self._claimed is not None or self._wait_ms == 0:
            self._propose()
        else:
            self._wait()

    def _wait(self) -> None:
        get, waiters = self._operation, self._services.job_waiters
        if type(self._proposed) is not Request:     # of a node of another version
            self._refuse()
            return
        plain, pick = (get, None) if type(get) is Get else (get.get, get)
        waiter = self._waiter = JobWaiter(
            self, waiters, wants=WaitRequest(plain, pick=pick, request=self._proposed))
        waiters.limit(waiter, self._wait_ms)
        waiters.add(waiter, propose_now=not self._first)

    def _refuse(self) -> None:
        self._end(CallFailure.GONE)

    # ---- replies

    def _stored(self, reply: Reply) -> None:
        self._end(calls.NumberResult(reply.number) if type(reply) is StoredNumber else failure_of(reply))

    def _handed(self, reply: Reply) -> None:
        if type(reply) is Handed:
            self._end(self._reserved(reply))
        elif type(reply) is Empty and self._waiter is None and self._wait_ms != 0 and not self.ended:
            self._first = False                     # another one has taken the job, and the number is used
            self._wait()
        elif isinstance(reply, Empty | QueueNotFound):
            self._end(None)
        else:
            self._end(failure_of(reply))

    def _reserved(self, reply: Handed) -> calls.Reserved:
        """Convert a job that was handed out.

        A job put by the native protocol is known only by the id of its hand-out.
        """
        job = self._cluster.machine.running_job(reply.id)
        number, ttr_s = reply.id, LASTING_S
        if job is not None:
            extras = job.extras
            number = number_of(job) or number
            if extras is not None and extras.lease_ms:
                ttr_s = extras.lease_ms / MS                    # as the client counts it, from when it hears of the job
            elif job.deadline_ms is not None:
                ttr_s = max(job.deadline_ms - self._cluster.time_ms, 0) / MS
        return calls.Reserved(number, reply.id, reply.queue, ttr_s, reply.data)

    def _ended(self, reply: Reply) -> None:
        self._end(CallFailure.NOT_FOUND if type(reply) is NotFound else None)

    def _deleted(self, reply: Reply) -> None:
        if type(reply) is not Finished:
            self._end(failure_of(reply))
        else:
            self._end(None if self._queue is None else calls.Names((self._queue,)))

    def _kicked(self, reply: Reply) -> None:
        kick = self._operation
        if type(reply) is not Removed:
            self._end(failure_of(reply))
            return
        self._count += reply.count
        if kick.selector is not None:
            self._end(None)
        elif not reply.more or self._count >= kick.count:
            self._end(calls.NumberResult(self._count))
        elif self.ended:
            self._end(None)
        elif not self._still_may(kick):
            self._end(calls.NumberResult(self._count))
        else:                                       # outside the session, as repeating it does no harm
            buried = None if reply.buried is UNSET else reply.buried
            self._proposed = Kick(kick.queue, kick.count - self._count, here=True, buried=buried)
            self._propose()

    def _accepted(self, reply: Reply) -> None:
        self._end(None if isinstance(reply, Accepted | QueueNotFound) else failure_of(reply))

    def _opened(self, reply: Reply) -> None:
        if type(reply) is SessionOpened:
            self._end(calls.NumberResult(int(reply.sid.partition("_")[0])))
        else:
            self._end(CallFailure.OUT_OF_MEMORY)

    def _done(self, reply: Reply) -> None:
        self._end(None)

    # ---- WaitingClient

    def wake(self) -> None:
        """Record that the waiter has its outcome."""
        waiter = self._waiter
        if waiter is None or waiter.outcome is None:
            return
        outcome = waiter.outcome
        if outcome == waiter.timeout_answer:
            self._end(None)
        elif outcome == BUSY:                       # its last Get had no turn
            self._end(RETRY)
        elif isinstance(outcome, bytes):            # the user may no longer have the jobs
            self._end(CallFailure.FORBIDDEN)
        elif outcome is NoReply.CANCELLED:          # an earlier Get may have got a job, which only the log can tell
            self._end(None if self._first else RETRY)
        elif isinstance(outcome, NoReply):
            self._end(RETRY)
        else:
            self.applied(outcome)       # type: ignore[arg-type]  # all other outcomes are replies

    # ---- ClientPending

    def applied(self, reply: Reply) -> None:
        """Record that the operation was executed."""
        claimed = self._claimed
        if claimed is not None:
            self._claimed = None
            self._services.job_waiters.settle_claim(claimed, reply)
        if type(reply) is SessionNotFound:
            self._end(SessionLost())
        else:
            self._reply(self, reply)

    def refused(self) -> None:
        """Record that the operation was not executed: this node no longer leads."""
        self._give_up()

    def unknown(self) -> None:
        """Record that it is unknown whether the operation was executed; repeating the request will show."""
        self._give_up()

    def overdue(self) -> None:
        """Record that the operation was dropped: the node is overloaded at the moment, so a new put is refused."""
        claimed, self._claimed = self._claimed, None
        if claimed is not None:
            self._services.job_waiters.settle_claim(claimed, None)
        if not self._first:
            asyncio.get_running_loop().call_later(OVERLOADED_S, self._propose)
        else:
            self._end(CallFailure.OUT_OF_MEMORY if type(self._operation) is PutWith else RETRY)

    # ---- the end

    def _give_up(self) -> None:
        claimed, self._claimed = self._claimed, None
        if claimed is not None:
            self._services.job_waiters.drop_claim(claimed)
        self._end(RETRY)

    def _end_unlogged(self, failure: CallFailure) -> None:
        """End with an answer from the state, which is valid if no other node can lead at this moment."""
        self._end(failure if self._cluster.holds_lease else RETRY)

    def _end(self, outcome: Outcome) -> None:
        if self._operation is not None:
            self._operation = self._proposed = self._waiter = None
            self._report(outcome)


def _by_number(operation: Operation) -> bool:
    """Return whether the operation is on one job that its client knows by its number."""
    if type(operation) is GetWith:
        return operation.number is not None
    return isinstance(operation, Delete | Kick) and operation.selector is not None


def queues_of(get: Taking) -> tuple[str, ...]:
    """Return the queues from which a Get takes jobs."""
    return (get if type(get) is Get else get.get).queues or ()      # type: ignore[union-attr]


def failure_of(reply: Reply) -> CallFailure:
    """Return why a call fails, after this reply to its operation."""
    if isinstance(reply, NotFound | JobRunning | QueueNotFound):
        return CallFailure.NOT_FOUND
    if isinstance(reply, QueueFull | QueuePaused | Elsewhere):
        return CallFailure.DRAINING
    if isinstance(reply, DataTooLarge | BadSetting):
        return CallFailure.FORBIDDEN
    return CallFailure.OUT_OF_MEMORY


# By type of operation: the right it needs, the check that may refuse it, and how it is proposed and answered.
_Rule = tuple[
    Callable[[OperationExecution, Any, Rights], bool] | None,
    Callable[[OperationExecution, Any], CallFailure | None] | None,
    Callable[[OperationExecution], None],
    Callable[[OperationExecution, Any], None],
]
_NO_RULE: _Rule = None, None, OperationExecution._refuse, OperationExecution._done       # no call needs this operation
_GET: _Rule = OperationExecution._may_get, None, OperationExecution._get, OperationExecution._handed
_GET_NUMBER: _Rule = (
    OperationExecution._may_get_number, OperationExecution._exists, OperationExecution._propose,
    OperationExecution._handed)
_END: _Rule = OperationExecution._may_end, None, OperationExecution._propose, OperationExecution._ended
_CHANGE = OperationExecution._may_change, OperationExecution._existed
_RULES: dict[type, _Rule] = {
    PutWith: (
        OperationExecution._may_put, OperationExecution._has_room, OperationExecution._put, OperationExecution._stored),
    Get: _GET, GetWith: _GET,
    End: _END, Touch: _END,
    Delete: (*_CHANGE, OperationExecution._propose, OperationExecution._deleted),
    Kick: (*_CHANGE, OperationExecution._propose, OperationExecution._kicked),
    PauseQueue: (OperationExecution._may_change, None, OperationExecution._propose, OperationExecution._accepted),
    Return: (None, None, OperationExecution._propose, OperationExecution._done),
    CloseSession: (None, None, OperationExecution._propose, OperationExecution._done),
    OpenSession: (None, None, OperationExecution._propose, OperationExecution._opened),
    TouchSession: (None, None, OperationExecution._propose, OperationExecution._done),
}


def _rule_of(operation: Operation) -> _Rule:
    if type(operation) is GetWith and operation.number is not None:
        return _GET_NUMBER
    return _RULES.get(type(operation), _NO_RULE)
