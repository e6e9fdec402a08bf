"""Sessions: which one a connection is attached to, and the commands SESSION and TAKEN (spec/sessions 1.3).

A session is part of the replicated state and outlives connections. A connection is attached to one at most, several may
be attached to the same one. SESSION and TAKEN stand alone: what is behind them in the stream is executed when it is
known which session the connection has.
"""

from __future__ import annotations

import asyncio

from core import (
    Accepted,
    AttachSession,
    CloseSession,
    OpenSession,
    Removed,
    Reply,
    SessionAttached,
    SessionNotFound,
    SessionOpened,
    TouchSession,
)
from gateway.commands.client import Client
from gateway.commands.in_session import without_session
from gateway.commands.proposing import propose
from gateway.commands.session_owners import source
from gateway.commands.streams import run_list
from gateway.limits import SESSION_LOOK_S, SESSION_TTL_MS_DEFAULT, SESSION_USES_PER_TTL
from gateway.protocol import responses
from gateway.protocol.command import Command
from gateway.waiting.slots import Awaited, Fate


class Attached:
    """The session `number`, as long as the connection is attached to it.

    A session ends some time after its last use, and whoever waits says nothing. So a command that is blocked in the
    name of the session uses it now and then, by asking again for what it waits for; more often where the session is
    in danger of being given up for another one of its owner.
    """

    def __init__(self, client: Client, number: int, ttl_ms: int) -> None:
        self.number = number
        self._client = client
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
            waiter = self._client.waiter
            if waiter is not None and waiter.wanted.in_session:
                self._client.hub.waiters.ask_again(waiter)
        self._rest()

    def _in_danger(self) -> bool:
        """May its owner lose it before it is looked at again, if sessions are opened as fast as since the last time?"""
        hub, before, self._opened = self._client.hub, self._opened, self._openings()
        free = hub.limits.sessions_per_owner_max - hub.cluster.machine.sessions_beside(self.number)
        return free < 2 * (self._opened - before)

    def _openings(self) -> int:
        return self._client.hub.tally.sessions


def open_session(client: Client, command: Command) -> None:
    """SESSION [TTL]: a new one."""
    client.hub.tally.sessions += 1
    client.run(_open(client, command.arguments[0]))


async def _open(client: Client, ttl_ms: int | None) -> None:
    client.state.attach(None)
    hub = client.hub
    if ttl_ms is None:
        ttl_ms = hub.cluster.machine.settings.session_ttl_ms or SESSION_TTL_MS_DEFAULT
    outcome = await propose(hub.cluster, OpenSession(
        hub.new_secret(), ttl_ms, client.guard.user or "", source(client.link.peer.rpartition(":")[0]),
        hub.limits.sessions_per_owner_max,
    ))
    if isinstance(outcome, SessionOpened):
        client.state.attach(Attached(client, int(outcome.sid.partition("_")[0]), outcome.ttl_ms))
    client.say(outcome)


def attach_session(client: Client, command: Command) -> None:
    """SESSION <sid>: come back. A connection that fails to has no session, so that it cannot use the wrong one."""
    client.run(_attach(client, *command.arguments))


async def _attach(client: Client, number: int, secret: int) -> None:
    client.state.attach(None)
    user = client.guard.user or ""
    outcome = await propose(client.hub.cluster, AttachSession(number, secret, user))
    if isinstance(outcome, SessionAttached):
        client.state.attach(Attached(client, number, outcome.ttl_ms))
        client.say(responses.session_attached(number, secret, outcome))
    else:
        client.say(outcome)


def close_session(client: Client, command: Command) -> None:
    """SESSION CLOSE [RELEASE]."""
    client.run(_close(client, command.arguments[0]))


async def _close(client: Client, release: bool) -> None:
    attached = client.state.attached
    if attached is None:
        client.say(without_session(client))
        return
    outcome: Reply | Fate = Removed(0, more=True)
    while isinstance(outcome, Removed):         # it has so many jobs that they are unbound in portions
        outcome = await propose(client.hub.cluster, CloseSession(attached.number, release))
    if isinstance(outcome, Accepted | SessionNotFound):
        client.state.attach(None)
    client.say(outcome)


def end_session(client: Client, command: Command) -> None:
    """SESSION END: whoever is attached to it learns that with his next command."""
    client.run(_end(client, command.arguments[0]))


async def _end(client: Client, number: int) -> None:
    client.say(await propose(client.hub.cluster, CloseSession(number, release=True)))


def ping(client: Client, command: Command) -> None:
    """PING. In a session it is a use of it (spec/sessions 2.1)."""
    if client.state.attached is None:
        client.say(responses.OK)
    else:
        slot = Awaited(client)
        client.await_slot(slot)
        client.hub.cluster.propose_for(client, TouchSession(client.state.attached.number), slot)


def taken(client: Client, command: Command) -> None:
    """TAKEN: the jobs bound to the session, as of an entry that uses it."""
    client.run(_taken(client))


async def _taken(client: Client) -> None:
    attached = client.state.attached
    if attached is None:
        client.say(without_session(client))
        return
    cluster = client.hub.cluster
    outcome = await propose(cluster, TouchSession(attached.number))
    if isinstance(outcome, Accepted):
        await run_list(client, cluster.machine.taken(attached.number), with_data=False)
    else:
        client.say(outcome)
