"""One connection's backend: it has a session, and sends the operations of its calls to the current leader."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from sockpqd.beanstalk import Call, CallFailure, Done, Result, calls
from sockpqd.cluster.api import Cluster
from sockpqd.core import NotYet, OpenSession, Operation, Request, TouchSession, level_of
from sockpqd.gateway import audit
from sockpqd.gateway.beanstalkd.audited import ACTIONS, noted
from sockpqd.gateway.beanstalkd.call_operations import CALL_OPERATIONS, MS, OUTSIDE_SESSION, next_operation
from sockpqd.gateway.beanstalkd.execution import OperationExecution, failure_of
from sockpqd.gateway.beanstalkd.lookups import look_up
from sockpqd.gateway.beanstalkd.remote import (
    RETRY,
    Outcome,
    Remote,
    RemoteRead,
    RemoteRequest,
    Retry,
    SessionLost,
    decode_outcome,
    encode,
)
from sockpqd.gateway.beanstalkd.services import NodeServices, Principal
from sockpqd.gateway.beanstalkd.sessions import NodeSession, NodeSessions
from sockpqd.gateway.beanstalkd.surveys import SurveyReader

SILENT_S = 30.0                 # without a leader or an outcome for this long the connection is closed
PAUSE_S = 0.02                  # before a retry, at first
PAUSE_S_MAX = 0.2
REACHED_S = 1.0                 # a Reserve that was in flight for this long had reached a leader
SESSION_TTL_MS = 10_000         # of silence of the node, after which the jobs of its connections go back
NOT_FOUND = CallFailure.NOT_FOUND    # an attribute of an enumeration is slow
NO_DIGEST = b""                 # of requests: a node never uses a number for another command


class NodeBackend:
    """Executes the calls of one connection, one at a time (beanstalk.Backend)."""

    def __init__(self, services: NodeServices, sessions: NodeSessions, principal: Principal) -> None:
        self._services = services
        self._cluster: Cluster = services.cluster
        self._sessions = sessions
        self._principal = principal
        self._loop = asyncio.get_running_loop()
        self._execution = OperationExecution(services, principal, self._report)
        self._session: NodeSession | None = None
        self._unsure = False                # a job may be bound to the session unknown to the client
        self._call: Call | None = None
        self._done: Done | None = None
        self._number = 0                    # of the request
        self._part = 0                      # of it: each operation of a call is one
        self._sent: Operation | RemoteRead | None = None    # what is executed now
        self._attempts = 0                  # how often that was tried
        self._cancelled = False
        self._recall: Callable[[], None] | None = None      # cancels what is in flight
        self._sent_at: float | None = None  # when a call that waits was sent
        self._failing_since: float | None = None
        self._until: float | None = None    # of a reserve: how long it may wait
        self._timer: asyncio.TimerHandle | None = None

    # ---- Backend

    def execute(self, call: Call, done: Done) -> None:
        if type(call) is calls.PutJob and not self._cluster.online:
            done(CallFailure.DRAINING)
            return
        self._call, self._done, self._cancelled, self._failing_since = call, done, False, None
        if type(call) is calls.Reserve:
            self._until = None if call.wait_s is None else self._loop.time() + call.wait_s
        elif type(call) in ACTIONS:
            self._done = noted(self._principal, call, done)
            if audit.is_behind(self._services):
                task = asyncio.ensure_future(self._begin_in_time())
                self._recall = partial(self._not_begun, task)
                return
        self._begin()

    def cancel(self) -> None:
        self._cancelled = True
        if self._recall is not None:
            self._recall()

    def leave(self) -> None:
        if self._unsure:
            self._forget_session()          # it ends, as it is no longer used, and the job goes back
        elif self._session is not None:
            self._sessions.give_back(self._session)
            self._session = None

    def keep(self, sessions: tuple[int, ...], done: Callable[[], None]) -> None:
        """Keep these sessions of this node alive by using them; `done` is called with the outcome."""
        self._done = lambda _: done()
        self._send(TouchSession(sessions))

    # ---- attempts

    async def _begin_in_time(self) -> None:
        """Begin the call when there is room for its line in the audit log."""
        await audit.room(self._services)
        self._recall = None
        self._begin()

    def _not_begun(self, waiting: asyncio.Task[None]) -> None:
        waiting.cancel()
        self._end(None)

    def _begin(self) -> None:
        """Send the first operation of the call, in a session; open one if there is none."""
        call, session = self._call, self._session
        if type(call) is calls.Pause and not call.known:
            self._attempts = 0
            self._end(CallFailure.NOT_FOUND)
            return
        first_operation = CALL_OPERATIONS.get(type(call))
        if first_operation is None:
            self._send(RemoteRead(call if isinstance(call, calls.Lookup) else None))
            return
        if session is None:
            session = self._session = self._sessions.take()
            if session is None:
                secret = secrets.randbits(64)
                self._send(OpenSession(secret, SESSION_TTL_MS, address=self._cluster.name))
                return
        self._number, self._part = session.next_number(), 0
        self._send_part(session, first_operation(call, session.number))

    def _send_part(self, session: NodeSession, operation: Any) -> None:
        if type(operation) in OUTSIDE_SESSION:
            self._send(operation)
            return
        wait_ms = self._wait_ms() if type(self._call) is calls.Reserve else 0
        request = Request(session.number, self._number, NO_DIGEST, self._part, wait_ms != 0, operation)
        self._sent, self._attempts = request, 0
        self._send_now(request, wait_ms)

    def _send(self, what: Operation | RemoteRead) -> None:
        self._sent, self._attempts = what, 0
        self._send_now(what, 0)

    def _retry(self) -> None:
        self._timer = None
        if isinstance(self._sent, RemoteRead) and self._services.budget <= 0:     # what it reads may be large
            self._services.call_in_turn(self._retry_now)
        else:
            self._retry_now()

    def _retry_now(self) -> None:
        what = self._sent
        wait_ms: int | None = 0
        assert what is not None
        if type(self._call) is calls.Reserve and type(what) is Request:
            wait_ms = self._wait_ms()
            self._sent = what = replace(what, keep_waiting=wait_ms != 0)
        self._send_now(what, wait_ms)

    def _send_now(self, what: Operation | RemoteRead, wait_ms: int | None) -> None:
        """Let the leader, which may be this node, execute the operation."""
        self._attempts = attempts = self._attempts + 1
        self._sent_at = None if wait_ms == 0 else self._loop.time()
        if not self._cluster.serving:
            self._forward(what if isinstance(what, RemoteRead) else RemoteRequest(what, wait_ms, attempts == 1))
        elif isinstance(what, RemoteRead):
            self._report(look_up(self._services, self._principal, what.call))
        else:
            self._recall = self._execution.cancel
            self._execution.begin(what, wait_ms, first=attempts == 1)

    def _forward(self, remote: Remote) -> None:
        level = self._cluster.machine.level
        if level < self._cluster.machine.known_level and level_of(remote) > level:
            self._report(failure_of(NotYet()))       # as the leader says, which might not even know the option
            return
        data = encode(remote, level)
        number = self._cluster.forward_call(self._principal.user, self._principal.peer, data, self._receive)
        if number is None:
            self._report(RETRY)
        else:
            self._recall = lambda: self._cluster.cancel_call(number)

    def _wait_ms(self) -> int | None:
        if self._cancelled:
            return 0
        return None if self._until is None else max(round((self._until - self._loop.time()) * MS), 0)

    # ---- outcomes

    def _receive(self, data: bytes | None) -> None:
        self._report(RETRY if data is None else decode_outcome(data))

    def _report(self, outcome: Outcome) -> None:
        """Continue with the outcome of the operation that was sent."""
        self._recall = None
        kind = type(outcome)
        if kind is Retry:
            self._retry_soon()
        elif kind is SessionLost:
            self._lose_session()
        elif kind is calls.NumberResult and type(self._sent) is not Request:
            self._go_on(outcome.number)         # type: ignore[union-attr]
        elif outcome is NOT_FOUND or type(self._call) is calls.GiveBack:
            self._go_on_with_next(outcome)      # type: ignore[arg-type]
        else:
            self._end(outcome)                  # type: ignore[arg-type]

    def _go_on(self, number: int) -> None:
        """Continue with the prerequisite of the call: a session, or the index of the newest state."""
        if isinstance(self._call, calls.Survey):
            reader = SurveyReader(self._services, self._principal, self._call, self._end)
            self._recall = reader.cancel
            reader.begin(number)
        else:
            self._session = self._sessions.opened(number)
            self._begin()

    def _go_on_with_next(self, outcome: Result | CallFailure) -> None:
        session, operation = self._session, None
        if session is not None and isinstance(self._call, calls.Change):
            self._part += 1
            operation = next_operation(self._call, session.number, self._part, found=outcome is not NOT_FOUND)
        if session is None or operation is None:
            self._end(outcome)
        else:
            self._send_part(session, operation)

    def _retry_soon(self) -> None:
        """Retry, unless it has failed for too long.

        A waiting call may fail at any number of leaders, if each has kept it waiting for a while.
        """
        now = self._loop.time()
        waited = self._sent_at is not None and now - self._sent_at > REACHED_S
        if self._failing_since is None or waited:
            self._failing_since = now
        if now - self._failing_since > SILENT_S:
            self._end(CallFailure.GONE)
            return
        pause_s = min(PAUSE_S * 2 ** min(self._attempts - 1, 10), PAUSE_S_MAX)
        self._timer = self._loop.call_later(pause_s, self._retry)

    def _lose_session(self) -> None:
        """Start over: the session has ended, as this node was silent for too long, and its jobs have been put back.

        It is unknown whether an earlier attempt was executed. This matters only for a put, where the connection is
        closed; the other calls may be executed twice without harm.
        """
        assert self._session is not None
        self._sessions.lost(self._session)
        self._session, self._unsure = None, False
        if type(self._call) is calls.GiveBack:
            self._end(None)
        elif type(self._call) is calls.PutJob and self._attempts > 1:
            self._end(CallFailure.GONE)
        else:
            self._begin()

    def _forget_session(self) -> None:
        if self._session is not None:
            self._sessions.ended(self._session)
            self._session = None
        self._unsure = False

    def _end(self, result: Result | CallFailure) -> None:
        done, call = self._done, self._call
        self._call = self._sent = self._done = self._recall = None
        if type(call) is calls.GiveBack and call.handles:
            self._forget_session()          # it has ended with them
        elif self._attempts > 1 and isinstance(result, CallFailure):
            self._unsure = True
        assert done is not None
        done(result)
