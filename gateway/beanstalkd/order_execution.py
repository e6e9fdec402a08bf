"""Executing one order at the serving leader."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol

from sockpqd.beanstalk import Failure, calls
from sockpqd.cluster.api import Cluster
from sockpqd.core import (
    Get,
    Kick,
    OpenSession,
    Operation,
    Put,
    PutNumbered,
    PutWith,
    Reply,
    Request,
    SessionOpened,
    TouchSession,
)
from sockpqd.core import SessionNotFound as SessionNotFoundReply
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.beanstalkd.orders import AGAIN, NO_DIGEST, Keep, Newest, Open, Order, Outcome, SessionLost
from sockpqd.gateway.beanstalkd.steps import CallSteps, Plain, Refused, Steps, Wait
from sockpqd.gateway.protocol.responses import BUSY
from sockpqd.gateway.waiting.job_waiter import JobWaiter
from sockpqd.gateway.waiting.job_waiters import JobWaiters
from sockpqd.gateway.waiting.slots import NoReply
from sockpqd.gateway.waiting.wait_request import WaitRequest

OVERLOADED_S = 0.1              # before an operation that had no turn is proposed again

Told = Callable[[Outcome], None]


class Services(Protocol):
    """What orders are executed with."""

    cluster: Cluster
    waiters: JobWaiters
    access: Access
    budget: int                     # see beanstalk.turns

    def do_in_line(self, do: Callable[[], None]) -> None:
        """See beanstalk.turns."""

    def do_piece(self, piece: Callable[[], bool]) -> None:
        """See beanstalk.turns."""


class Principal:
    """On whose behalf orders are executed: the user and the address of the client, as the authorizer asks for them."""

    def __init__(self, user: str | None, address: str) -> None:
        self.user = user
        self.peer = address


class OrderExecution:
    """One order; `told` is called once with its outcome, perhaps before `begin` returns."""

    def __init__(self, services: Services, principal: Principal, order: Order, told: Told) -> None:
        self.ended = False              # WaitingClient: whether the client waits no more
        self._services = services
        self._cluster = services.cluster
        self._principal = principal
        self._order = order
        self._told: Told | None = told
        self._part = 0                  # of the request, for the next operation
        self._steps: Steps | None = None
        self._waiter: JobWaiter | None = None
        self._operation: Operation | None = None

    @property
    def guard(self) -> Guard:
        """WaitingClient: what the user may do."""
        return Guard(self._services.access, self._cluster, self._principal)

    def begin(self) -> None:
        """Execute it."""
        call = self._order.call
        if isinstance(call, Newest):
            self._tell_what_was_read(calls.Number(self._cluster.machine.index))
            return
        if isinstance(call, (Open, Keep)):
            self._propose(_OF_NODE[type(call)](call))
            return
        rights = None
        if self._services.access.required and not isinstance(call, calls.GiveBack):
            account = None if self._principal.user is None else self._services.access.account(self._principal.user)
            if account is None:
                self._tell_what_was_read(Failure.FORBIDDEN)
                return
            rights = account.rights
        self._steps = CallSteps(self._cluster, rights, self._order.session, first=self._order.first).steps(call)
        self._advance(None)

    def cancel(self) -> None:
        """A call that waits shall wait no more: what it was handed out meanwhile is told. A kick ends early."""
        self.ended = True
        waiter = self._waiter
        if waiter is not None and waiter.outcome is None:
            waiter.leave()
            if waiter.outcome is not None:
                self._tell(None)

    # ---- steps

    def _advance(self, reply: Reply | None) -> None:
        assert self._steps is not None
        try:
            step = self._steps.send(reply)      # type: ignore[arg-type]  # None begins a generator
        except StopIteration as end:
            outcome = end.value
        except Refused as refused:
            outcome = refused.failure
        else:
            self._take(step)
            return
        if reply is None:
            self._tell_what_was_read(outcome)
        else:
            self._tell(outcome)

    def _take(self, step: Any) -> None:
        if type(step) is Wait:
            self._wait(step)
        elif self.ended and type(step) is Plain and type(step.operation) is Kick:
            self._tell(None)
        elif type(step) is Plain:
            self._propose(step.operation)
        else:
            self._propose(self._numbered(step))
            self._follow(step)

    def _numbered(self, operation: Any, *, keep_waiting: bool = False) -> Operation:
        """The operation as the next part of the request."""
        part = self._part
        self._part += 1
        return Request(self._order.session, self._order.number, NO_DIGEST, part, keep_waiting, operation)

    def _propose(self, operation: Operation) -> None:
        self._operation = operation
        self._cluster.propose_for(self, operation, self)

    def _follow(self, operation: Any) -> None:
        """Propose the Get of somebody who waits right behind a put."""
        put = operation.job if isinstance(operation, PutNumbered) else None
        if isinstance(put, PutWith) and put.when is None and isinstance(put.put, Put):
            self._services.waiters.follow(put.put, self)

    def _wait(self, wait: Wait) -> None:
        request = self._numbered(wait.get, keep_waiting=wait.wait_ms != 0)
        assert isinstance(request, Request)
        if wait.wait_ms == 0:
            self._propose(request)
            return
        waiters, get = self._services.waiters, wait.get
        plain, pick = (get, None) if isinstance(get, Get) else (get.get, get)
        wants = WaitRequest(plain, pick=pick, request=request)
        self._waiter = JobWaiter(self, waiters, wants)
        if wait.wait_ms is not None:
            waiters.limit(self._waiter, wait.wait_ms)
        waiters.add(self._waiter, propose_now=not self._order.first)

    # ---- WaitingClient

    def wake(self) -> None:
        """The waiter has its outcome."""
        assert self._waiter is not None
        outcome = self._waiter.outcome
        if self._told is None or outcome is None:
            return
        if outcome == self._waiter.timeout_answer:
            self._tell(None)
        elif outcome == BUSY:                       # its last Get had no turn
            self._tell(AGAIN)
        elif isinstance(outcome, bytes):            # the user may not have the jobs any more
            self._tell(Failure.FORBIDDEN)
        elif outcome is NoReply.CANCELLED:          # an earlier Get may have got a job, which only the log can tell
            self._tell(None if self._order.first else AGAIN)
        elif isinstance(outcome, NoReply):
            self._tell(AGAIN)
        else:
            self._reply(outcome)

    # ---- ClientPending

    def applied(self, reply: Reply) -> None:
        """The operation was executed."""
        self._reply(reply)

    def refused(self) -> None:
        """The operation was not executed: this node does not lead any more."""
        self._tell(AGAIN)

    def unknown(self) -> None:
        """It is unknown whether the operation was executed: its number will tell."""
        self._tell(AGAIN)

    def overdue(self) -> None:
        """The operation had no turn: there is too much to do."""
        if isinstance(self._order.call, calls.Put) and self._order.first:
            self._tell(Failure.OUT_OF_MEMORY)
        elif self._operation is not None:
            asyncio.get_running_loop().call_later(OVERLOADED_S, self._propose, self._operation)

    def _reply(self, reply: Any) -> None:
        if type(reply) is SessionNotFoundReply:
            self._tell(SessionLost())
        elif type(reply) is SessionOpened:
            self._tell(calls.Number(int(reply.sid.partition("_")[0])))
        elif self._steps is None:
            self._tell(None)
        else:
            self._advance(reply)

    def _tell_what_was_read(self, outcome: Outcome) -> None:
        """An outcome that the log has not seen: it counts if no other node can lead at this moment."""
        self._tell(outcome if self._cluster.holds_lease else AGAIN)

    def _tell(self, outcome: Outcome) -> None:
        told, self._told = self._told, None
        if told is not None:
            if self._steps is not None:
                self._steps.close()
            told(outcome)


def _open(call: Open) -> Operation:
    return OpenSession(call.secret, SESSION_TTL_MS, address=call.node)


SESSION_TTL_MS = 10_000         # of silence of the node, after which the jobs of its connections go back
_OF_NODE: dict[type, Callable[[Any], Operation]] = {Open: _open, Keep: lambda call: TouchSession(call.sessions)}
