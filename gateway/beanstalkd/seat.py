"""One connection's place: its session, and how its orders reach whoever leads."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable

from msgspec.structs import replace

from sockpqd.beanstalk import Call, Done, Failure, Result, calls
from sockpqd.cluster import CALL_BYTES_MAX
from sockpqd.cluster.api import Cluster
from sockpqd.gateway.beanstalkd.fast_path import FastPath
from sockpqd.gateway.beanstalkd.order_execution import OrderExecution, Principal, Services
from sockpqd.gateway.beanstalkd.orders import (
    Again,
    Keep,
    Newest,
    Open,
    Order,
    Outcome,
    SessionLost,
    decode_outcome,
    encode,
)
from sockpqd.gateway.beanstalkd.reading import Reading
from sockpqd.gateway.beanstalkd.sessions import NodeSession, NodeSessions

SILENT_S = 30.0                 # without a leader or an outcome for this long the connection is closed
PAUSE_S = 0.02                  # before an order is given again, at first
PAUSE_S_MAX = 0.2
REACHED_S = 1.0                 # a Reserve that was under way for this long had reached a leader

# What only reads, or can be repeated, and needs no session.
WITHOUT_SESSION = frozenset({
    calls.Peek, calls.PeekFirst, calls.JobStats, calls.TubeStats, Keep,
})

Readable = calls.Tubes | calls.Totals       # read here, once this node has the leader's newest state


class NodeSeat:
    """Executes the calls of one connection, one at a time (beanstalk.Seat)."""

    def __init__(self, services: Services, sessions: NodeSessions, principal: Principal) -> None:
        self._services = services
        self._cluster: Cluster = services.cluster
        self._sessions = sessions
        self._principal = principal
        self._loop = asyncio.get_running_loop()
        self._fast_path = FastPath(services, principal, self._end, self._told)
        self._session: NodeSession | None = None
        self._unsure = False                # whether a job may be bound to the session of which nobody knows
        self._call: Call | Keep | None = None
        self._order: Order | None = None
        self._done: Done | None = None
        self._cancelled = False
        self._recall: Callable[[], None] | None = None     # ends the order that is under way
        self._given = 0                     # how often the order was given
        self._given_at = 0.0
        self._failing_since: float | None = None
        self._until: float | None = None    # of a reserve: how long it may wait
        self._timer: asyncio.TimerHandle | None = None

    # ---- Seat

    def execute(self, call: Call, done: Done) -> None:
        """See Seat."""
        if type(call) is calls.Put and not self._cluster.online:
            done(Failure.DRAINING)
            return
        self._call, self._done, self._cancelled, self._failing_since = call, done, False, None
        self._until = None
        if type(call) is calls.Reserve and call.wait_s is not None:
            self._until = self._loop.time() + call.wait_s
        self._begin()

    def cancel(self) -> None:
        """See Seat."""
        self._cancelled = True
        if self._recall is not None:
            self._recall()

    def leave(self) -> None:
        """See Seat."""
        if self._unsure:
            self._forget_session()          # it ends, as it is not used any more, and the job goes back
        elif self._session is not None:
            self._sessions.give_back(self._session)
            self._session = None

    def keep(self, sessions: tuple[int, ...], done: Callable[[], None]) -> None:
        """Use these sessions of this node."""
        self._call, self._done = Keep(sessions), lambda _: done()
        self._begin()

    # ---- orders

    def _begin(self) -> None:
        """Give an order for the call, in a session if it needs one: to the fast path if it can take it."""
        call, session = self._call, self._session
        assert call is not None
        if isinstance(call, Readable):
            order = Order(Newest(), first=True)
        elif type(call) in WITHOUT_SESSION:
            order = Order(call, first=True)
        else:
            if session is None:
                session = self._session = self._sessions.take()
            if session is None:
                order = Order(Open(self._cluster.name, secrets.randbits(64)), first=True)
            else:
                order = Order(call, session.number, session.next_number(), True)
        self._order = order
        if self._cluster.serving:
            self._given, self._given_at, self._recall = 1, self._loop.time(), self._fast_path.cancel
            if self._fast_path.take(order):
                return
        self._given = 0
        self._give_now()

    def _begin_anew(self) -> None:
        """Begin the call, for which time has passed already."""
        if type(self._call) is calls.Reserve:
            self._call = replace(self._call, wait_s=self._wait_s())
        self._begin()

    def _give_again(self) -> None:
        assert self._order is not None
        self._order = replace(self._order, first=False)
        self._give_now()

    def _give_now(self) -> None:
        """Give the order to the leader, here or elsewhere."""
        self._timer, order = None, self._order
        assert order is not None
        self._given += 1
        self._given_at = self._loop.time()
        if type(order.call) is calls.Reserve and self._given > 1:
            order = replace(order, call=replace(order.call, wait_s=self._wait_s()))
        if self._cluster.serving:
            execution = OrderExecution(self._services, self._principal, order, self._told)
            self._recall = execution.cancel
            execution.begin()
            return
        data = encode(order)
        if len(data) > CALL_BYTES_MAX:        # it ends very many jobs: so does the end of their session
            self._end(Failure.OUT_OF_MEMORY)
            return
        number = self._cluster.forward_call(self._principal.user, self._principal.peer, data, self._reported)
        if number is None:
            self._told(Again())
        else:
            self._recall = lambda: self._cluster.cancel_call(number)

    def _wait_s(self) -> float | None:
        if self._cancelled:
            return 0
        return None if self._until is None else max(self._until - self._loop.time(), 0)

    def _reported(self, data: bytes | None) -> None:
        self._told(Again() if data is None else decode_outcome(data))

    def _told(self, outcome: Outcome) -> None:
        """The order has an outcome."""
        self._recall = None
        if isinstance(outcome, Again):
            self._again()
        elif isinstance(outcome, SessionLost):
            self._session_lost()
        elif self._order is not None and type(self._order.call) is Open:
            if isinstance(outcome, calls.Number):
                self._session = self._sessions.opened(outcome.number)
                self._begin_anew()
            else:
                self._end(Failure.OUT_OF_MEMORY)
        elif isinstance(self._call, Readable) and isinstance(outcome, calls.Number):
            reading = Reading(self._services, self._principal, self._call, self._end)
            self._recall = reading.cancel
            reading.begin(outcome.number)
        else:
            self._end(outcome)

    def _again(self) -> None:
        """Give the order again, soon, unless it has failed for too long.

        One that waits may fail at any number of leaders, after a while at each.
        """
        now = self._loop.time()
        waited = type(self._call) is calls.Reserve and now - self._given_at > REACHED_S
        if self._failing_since is None or waited:
            self._failing_since = now
        if now - self._failing_since > SILENT_S:
            self._end(Failure.GONE)
            return
        pause_s = min(PAUSE_S * 2 ** min(self._given - 1, 10), PAUSE_S_MAX)
        self._timer = self._loop.call_later(pause_s, self._give_again)

    def _session_lost(self) -> None:
        """The session has ended, as this node was silent for too long: the jobs of the connection have gone back.

        Nobody knows any more whether an earlier attempt was executed: this shows only for a job that was put, by
        closing the connection. The others may be executed twice without harm.
        """
        assert self._session is not None
        self._sessions.lost(self._session)
        self._session, self._unsure = None, False
        if type(self._call) is calls.GiveBack:
            self._end(None)
        elif type(self._call) is calls.Put and self._given > 1:
            self._end(Failure.GONE)
        else:
            self._begin_anew()

    def _forget_session(self) -> None:
        if self._session is not None:
            self._sessions.ended(self._session)
            self._session = None
        self._unsure = False

    def _end(self, result: Result | Failure) -> None:
        done, call, self._call, self._order, self._done = self._done, self._call, None, None, None
        self._recall = None
        if type(call) is calls.GiveBack and call.handles:
            self._forget_session()          # it has ended with them
        elif self._given > 1 and isinstance(result, Failure):
            self._unsure = True
        assert done is not None
        done(result)
