"""Sessions: which one a connection is attached to, and the commands SESSION and TAKEN (spec/sessions 1.3).

A session is part of the replicated state and outlives connections. A connection is attached to one at most, several may
be attached to the same one. SESSION and TAKEN stand alone: what is behind them in the stream is executed when it is
known which session the connection has.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from core import (
    Accepted,
    AttachSession,
    CloseSession,
    OpenSession,
    Operation,
    Removed,
    Reply,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    TouchSession,
)
from gateway.commands.session_owners import source
from gateway.commands.streams import run_list
from gateway.limits import SESSION_LOOK_S, SESSION_USES_PER_TTL
from gateway.protocol import requests, responses
from gateway.waiting.slots import Fate, Outcome

if TYPE_CHECKING:
    from cluster.api import Cluster
    from gateway.server.conversation import Conversation


class Attached:
    """The session `number`, as long as the connection is attached to it.

    A session ends some time after its last use, and whoever waits says nothing. So a command that is blocked in the
    name of the session uses it now and then, by asking again for what it waits for; more often where the session is
    in danger of being given up for another one of its owner.
    """

    def __init__(self, conversation: Conversation, number: int, ttl_ms: int) -> None:
        self.number = number
        self._conversation = conversation
        self._interval_s = ttl_ms / 1000 / SESSION_USES_PER_TTL
        self._rested_s = 0.0
        self._opened = self._openings()
        self._rest()

    def leave(self) -> None:
        """The connection is not attached any more."""
        self._timer.cancel()

    def _rest(self) -> None:
        pause_s = min(self._interval_s - self._rested_s, SESSION_LOOK_S)
        self._rested_s += pause_s
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._look)

    def _look(self) -> None:
        if self._in_danger() or self._rested_s >= self._interval_s:
            self._rested_s = 0.0
            waiter = self._conversation.waiter
            if waiter is not None and waiter.in_session:
                self._conversation.hub.waiters.ask_again(waiter)
        self._rest()

    def _in_danger(self) -> bool:
        """May its owner lose it before it is looked at again, if sessions are opened as fast as since the last time?"""
        hub, before, self._opened = self._conversation.hub, self._opened, self._openings()
        free = hub.limits.sessions_per_owner_max - hub.cluster.machine.sessions_beside(self.number)
        return free < 2 * (self._opened - before)

    def _openings(self) -> int:
        return self._conversation.hub.tally.commands[requests.SessionOpen]


def without_session(conversation: Conversation) -> Outcome:
    """What is said to a command that needs a session on a connection that has none; a follower knows of no session."""
    return responses.SESSION_NOT_FOUND if conversation.hub.cluster.serving else Fate.REFUSED


async def open_session(conversation: Conversation, request: requests.SessionOpen) -> None:
    """SESSION [TTL]: a new one."""
    conversation.attach(None)
    hub = conversation.hub
    ttl_ms = request.ttl_ms
    if request.default:
        ttl_ms = hub.cluster.machine.settings.session_ttl_ms or ttl_ms
    outcome = await propose(hub.cluster, OpenSession(
        hub.new_secret(), ttl_ms, conversation.guard.user or "", source(conversation.link.peer.rpartition(":")[0]),
        hub.limits.sessions_per_owner_max,
    ))
    if isinstance(outcome, SessionOpened):
        conversation.attach(Attached(conversation, int(outcome.sid.partition("_")[0]), outcome.ttl_ms))
    conversation.say(outcome)


async def attach_session(conversation: Conversation, request: requests.SessionAttach) -> None:
    """SESSION <sid>: come back. A connection that fails to has no session, so that it cannot use the wrong one."""
    conversation.attach(None)
    user = conversation.guard.user or ""
    outcome = await propose(conversation.hub.cluster, AttachSession(request.number, request.secret, user))
    if isinstance(outcome, SessionAttached):
        conversation.attach(Attached(conversation, request.number, outcome.ttl_ms))
        conversation.say(responses.session_attached(request.number, request.secret, outcome))
    else:
        conversation.say(outcome)


async def close_session(conversation: Conversation, request: requests.SessionClose) -> None:
    """SESSION CLOSE [RELEASE]."""
    attached = conversation.attached
    if attached is None:
        conversation.say(without_session(conversation))
        return
    outcome: Reply | Fate = Removed(0, more=True)
    while isinstance(outcome, Removed):         # it has so many jobs that they are unbound in portions
        outcome = await propose(conversation.hub.cluster, CloseSession(attached.number, request.release))
    if isinstance(outcome, Accepted | SessionNotFound):
        conversation.attach(None)
    conversation.say(outcome)


async def end_session(conversation: Conversation, request: requests.SessionEnd) -> None:
    """SESSION END: whoever is attached to it learns that with his next command."""
    conversation.say(await propose(conversation.hub.cluster, CloseSession(request.number, release=True)))


async def taken(conversation: Conversation, request: requests.Taken) -> None:
    """TAKEN: the jobs bound to the session, as of an entry that uses it."""
    attached = conversation.attached
    if attached is None:
        conversation.say(without_session(conversation))
        return
    cluster = conversation.hub.cluster
    outcome = await propose(cluster, TouchSession(attached.number))
    if isinstance(outcome, Accepted):
        await run_list(conversation, cluster.machine.taken(attached.number), with_data=False)
    else:
        conversation.say(outcome)


class _Awaited:
    """Where the outcome of an operation goes that a coroutine waits for."""

    def __init__(self, cluster: Cluster, operation: Operation, client: object) -> None:
        self.outcome: asyncio.Future[Reply | Fate] = asyncio.get_running_loop().create_future()
        self._cluster = cluster
        self._operation = operation
        self._client = client or self
        self.propose()

    def propose(self) -> None:
        """Put the operation into the log."""
        self._cluster.propose_for(self._client, self._operation, self)

    def applied(self, reply: Reply) -> None:
        """The operation was executed."""
        self._settle(reply)

    def refused(self) -> None:
        """The operation was not executed."""
        self._settle(Fate.REFUSED)

    def unknown(self) -> None:
        """Nobody knows."""
        self._settle(Fate.UNKNOWN)

    def overdue(self) -> None:
        """There is much to do, and this can wait."""
        self.propose()

    def _settle(self, outcome: Reply | Fate) -> None:
        if not self.outcome.done():     # the client may have gone
            self.outcome.set_result(outcome)


async def propose(cluster: Cluster, operation: Operation, client: object = None) -> Reply | Fate:
    """Put the operation into the log and wait for what becomes of it.

    `client`: the conversation, if others of its operations may be under way.
    """
    return await _Awaited(cluster, operation, client).outcome
