"""Sessions: attaching connections to them, and the commands SESSION, TAKEN and PING (spec/sessions 1.3).

A session is part of the replicated state and outlives connections. A connection is attached to at most one session;
several connections can be attached to the same one. SESSION and TAKEN run alone: later commands in the stream are
executed once it is known which session the connection has.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from sockpqd.core import (
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
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.in_session import without_session
from sockpqd.gateway.commands.context.proposing import propose
from sockpqd.gateway.commands.context.session_owners import source
from sockpqd.gateway.commands.streams import taken_list
from sockpqd.gateway.limits import SESSION_LOOK_S, SESSION_TTL_MS_DEFAULT, SESSION_USES_PER_TTL
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.waiting.slots import NoReply, OperationSlot


class Attached:
    """A connection's attachment to session `number`.

    A session expires some time after its last use, and a blocked client sends nothing. So a command blocked in the
    session uses it from time to time by proposing its Get again, and more often while the session is in danger of being
    evicted in favour of a new one of the same owner.
    """

    def __init__(self, client: Client, number: int, ttl_ms: int) -> None:
        self.number = number
        self._client = client
        self._interval_s = ttl_ms / 1000 / SESSION_USES_PER_TTL
        self._rested_s = 0.0
        self._opened = self._openings()
        self._rest()

    def leave(self) -> None:
        """Stop keeping the session in use."""
        self._timer.cancel()

    def _rest(self) -> None:
        pause_s = min(self._interval_s - self._rested_s, SESSION_LOOK_S)
        self._rested_s += pause_s
        self._timer = asyncio.get_running_loop().call_later(pause_s, self._look)

    def _look(self) -> None:
        if self._in_danger() or self._rested_s >= self._interval_s:
            self._rested_s = 0.0
            waiter = self._client.waiter
            if waiter is not None:
                waiter.keep_session()
        self._rest()

    def _in_danger(self) -> bool:
        """Return whether the session could be evicted before the next check, at the current rate of new sessions."""
        hub, before, self._opened = self._client.hub, self._opened, self._openings()
        free = hub.limits.sessions_per_owner_max - hub.cluster.machine.sessions_beside(self.number)
        return free < 2 * (self._opened - before)

    def _openings(self) -> int:
        return self._client.hub.tally.sessions


def open_session(client: Client, command: Command) -> None:
    """SESSION [TTL]: open a new session."""
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
    ), client)
    if isinstance(outcome, SessionOpened):
        client.state.attach(Attached(client, int(outcome.sid.partition("_")[0]), outcome.ttl_ms))
    client.say(outcome)


def attach_session(client: Client, command: Command) -> None:
    """SESSION <sid>: attach to a session. On failure the connection has none, so that it cannot use the wrong one."""
    client.run(_attach(client, *command.arguments))


async def _attach(client: Client, number: int, secret: int) -> None:
    client.state.attach(None)
    user = client.guard.user or ""
    outcome = await propose(client.hub.cluster, AttachSession(number, secret, user), client)
    if isinstance(outcome, SessionAttached):
        client.state.attach(Attached(client, number, outcome.ttl_ms))
        client.say(responses.session_attached(number, secret, outcome))
    else:
        client.say(outcome)


def close_session(client: Client, command: Command) -> None:
    """SESSION CLOSE [RELEASE [FIRST]]: close the connection's session."""
    client.run(_close(client, *command.arguments))


async def _close(client: Client, release: bool, first: bool) -> None:
    attached = client.state.attached
    if attached is None:
        client.say(without_session(client))
        return
    operation = CloseSession(attached.number, release, first)
    outcome: Reply | NoReply = Removed(0, more=True)
    while isinstance(outcome, Removed):         # its jobs are unbound or released in portions
        outcome = await propose(client.hub.cluster, operation, client)
    if isinstance(outcome, Accepted | SessionNotFound):
        client.state.attach(None)
    client.say(outcome)


def keep_sessions(client: Client, command: Command) -> None:
    """SESSION KEEP: keep several sessions alive; those that ended, or are not the client's, are not counted."""
    client.run(_keep(client, command.arguments))


async def _keep(client: Client, named: Sequence[tuple[int, int]]) -> None:
    cluster, user = client.hub.cluster, client.guard.user or ""
    found = [(cluster.machine.session(number), secret) for number, secret in dict.fromkeys(named)]
    kept = tuple([
        one.number for one, secret in found
        if one is not None and one.secret == secret and not (one.user and user and one.user != user)
    ])
    outcome = await propose(cluster, TouchSession(kept), client)
    client.say(responses.number(len(kept)) if isinstance(outcome, Accepted) else outcome)


def end_session(client: Client, command: Command) -> None:
    """SESSION END: end any session; clients attached to it find out with their next command."""
    client.run(_end(client, command.arguments[0]))


async def _end(client: Client, number: int) -> None:
    client.say(await propose(client.hub.cluster, CloseSession(number, release=True), client))


def ping(client: Client, command: Command) -> None:
    """PING: answer OK. In a session it counts as a use (spec/sessions 2.1)."""
    if client.state.attached is None:
        client.say(responses.OK)
    else:
        slot = OperationSlot(client)
        client.await_slot(slot)
        client.over_share = client.hub.cluster.propose_for(client, TouchSession(client.state.attached.number), slot)


def taken(client: Client, command: Command) -> None:
    """TAKEN: list the jobs bound to the session, at the time of a log entry that uses it."""
    client.run(_taken(client))


async def _taken(client: Client) -> None:
    attached = client.state.attached
    if attached is None:
        client.say(without_session(client))
        return
    cluster = client.hub.cluster
    outcome = await propose(cluster, TouchSession(attached.number), client)
    if isinstance(outcome, Accepted):
        await taken_list(client, attached.number)
    else:
        client.say(outcome)
