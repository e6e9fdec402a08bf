"""Connections to the serving leader, with their sessions: discovery, attaching, leaving."""

from __future__ import annotations

import logging
import math
import os

from sockpq._backends.base import Network
from sockpq._engine.attempt import TINY_S, Attempt, value_of
from sockpq._engine.connection import Connection
from sockpq._engine.discovery import Discovery
from sockpq._engine.identity import Identity
from sockpq._engine.limits import Limits
from sockpq._engine.pool import Pool, Slot
from sockpq._engine.retry import ForeignServer, GivenUp, Lost, NoLeader, Retry
from sockpq._engine.stats import Counters
from sockpq._protocol.addresses import Address
from sockpq._protocol.commands.cluster import CLUSTER_STATUS, PING
from sockpq._protocol.commands.connection import session_attach, session_open
from sockpq._protocol.session import Session, SessionLost
from sockpq.errors import (
    AuthError,
    BadArguments,
    Busy,
    MapUnread,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    Untrusted,
)

LOG = logging.getLogger("sockpq")

SESSIONLESS_S = 10.0    # how long a connection goes without a session after one was refused

# Failures after which to try another server, or a new connection to the same one.
LEAVE = Lost, ProtocolError, NotServing, OutcomeUnknown, AuthError


class LeaderConnections:
    """The connections of one client. As many threads or tasks as its network allows may share them."""

    def __init__(
        self, network: Network, addresses: tuple[Address, ...], limits: Limits, identity: Identity,
        counters: Counters | None = None,
    ) -> None:
        """`counters`: shared by all clusters of a client."""
        self.network = network
        self.limits = limits
        self.identity = identity
        self.counters = counters or Counters()
        self.discovery = Discovery(
            network, addresses, identity, limits.connect_timeout, limits.server_timeout, self.counters
        )
        self._pool = Pool(limits.idle_max)
        self._process = os.getpid()

    @property
    def addresses(self) -> tuple[Address, ...]:
        """All servers that are known."""
        return self.discovery.addresses

    def close(self) -> None:
        """Close all connections, and end all calls in flight."""
        self.own()
        self.network.close()
        self._pool.close()

    def take(self, new: bool = False) -> Slot:
        """Return a slot with a connection, or for a new connection. Raises ClientClosed."""
        self.network.enter()
        self.own()
        return self._pool.take(new)

    def give_back(self, slot: Slot) -> None:
        """Return a slot that is no longer used."""
        self._pool.give_back(slot, self.network.now())

    def own(self) -> None:
        """In a forked child, drop everything shared with the parent, including locks that its threads held."""
        if self._process != os.getpid():
            self._pool.forget_all()
            self.discovery.new_locks()
            self._process = os.getpid()

    async def connection(self, slot: Slot, retry: Retry, numbered: bool) -> Connection:
        """Return a connection to the leader, for `numbered` requests one attached to the slot's session."""
        address = self.discovery.known_leader or await self.discovery.leader(retry.deadline, retry.attempts)
        connection = slot.connection
        if connection is not None and connection.address == address and not connection.usable():
            # The connection was closed while idle. Its server may be back as a follower, and a follower answers TOTAL
            # as well.
            slot.drop_connection()
            connection = None
            self._leave(address)
            address = await self.discovery.leader(retry.deadline, retry.attempts)
        if connection is None or connection.address != address:
            slot.drop_connection()
            try:
                connection = await self.connect(slot, address, retry.deadline)
            except Lost as failure:
                self._leave(address, isinstance(failure, ForeignServer))
                raise
            except Untrusted as failure:        # perhaps the others know another leader
                self._leave(address)
                if len(self.addresses) == 1:
                    raise
                raise Lost(str(failure), sent=False) from failure
        if (
            numbered and self.limits.sessions and not connection.session
            and self.network.now() >= connection.sessionless_until
        ):
            try:
                await self._attach(slot, connection, retry)
            except ForeignServer:
                raise
            except (Lost, ProtocolError, OutcomeUnknown) as failure:    # it is not the command that was lost
                self.note(slot, failure)
                raise Lost(str(failure), sent=False) from failure
        if retry.too_late(self.network.now()):
            raise retry.last or Lost("no time is left for it", sent=False)
        if numbered and self.identity.follows_map and not self.identity.map_is_read:
            if connection.entering:
                await self.attempt(connection).enter(retry.deadline)
            if self.identity.map_is_unread and not (retry.in_doubt or retry.bound):
                raise MapUnread("the map of clusters was not read yet", None)
        return connection

    async def connect(self, slot: Slot, address: Address, deadline: float) -> Connection:
        """Open a connection to this server. Raises what Connection.open raises."""
        timeout = max(min(self.limits.connect_timeout, deadline - self.network.now()), TINY_S)
        connection = await Connection.open(self.network, address, timeout, self.identity.use)
        self._pool.connected(slot, connection)
        self.counters.connects += 1
        LOG.debug("connected to %s", address)
        return connection

    async def _attach(self, slot: Slot, connection: Connection, retry: Retry) -> None:
        """Attach the connection to the slot's session, or to a new one. Raises SessionLost."""
        attempt = self.attempt(connection)
        if slot.session:
            await attempt.enter(retry.deadline)         # it is of no other cluster's concern
            command = session_attach(slot.session.sid)
            answer = await attempt.one(command, 0, retry.deadline, math.inf)
            if isinstance(answer.error, BadArguments | NotSupported):
                raise SessionLost("this server has no sessions")
            value_of(answer)
        else:
            ttl = slot.session_ttl or self.limits.session_ttl
            answer = await attempt.one(session_open(ttl), 0, retry.deadline, math.inf)
            if isinstance(answer.error, BadArguments | NotSupported):
                connection.sessionless_until = math.inf
                return
            if isinstance(answer.error, Busy):
                await self._do_without(slot, connection, retry, answer.error)
                return
            slot.session = Session(value_of(answer))
            if self.discovery.wants_members():
                status = await attempt.one(CLUSTER_STATUS, 0, retry.deadline, math.inf)
                self.discovery.learned(status.value or [])
        connection.session = slot.session

    async def _do_without(self, slot: Slot, connection: Connection, retry: Retry, refusal: Busy) -> None:
        """Work without a session for a while, as there are too many.

        Raises `refusal` if that concerns the connection.
        """
        try:
            await self.attempt(connection).one(PING, 0, retry.deadline, math.inf)
        except (Lost, ProtocolError, OutcomeUnknown):
            slot.drop_connection()
            raise refusal from None
        connection.sessionless_until = self.network.now() + SESSIONLESS_S

    def attempt(self, connection: Connection) -> Attempt:
        """Return an attempt on this connection."""
        return Attempt(connection, self.limits, self.discovery, self.network.now)

    def note(self, slot: Slot, failure: Exception) -> None:
        """Draw the conclusions from a failed attempt: about the server, the connection, the session."""
        if isinstance(failure, SessionLost):
            slot.session = None
            if slot.connection:
                slot.connection.session = None
        elif isinstance(failure, GivenUp) or self.network.closed:
            slot.drop_connection()
        elif slot.connection and isinstance(failure, LEAVE) and not isinstance(failure, NoLeader):
            self._leave(slot.connection.address, isinstance(failure, NotServing | ForeignServer))
            if not isinstance(failure, NotServing):
                slot.drop_connection()

    def _leave(self, address: Address, refused: bool = False) -> None:
        self.discovery.failed(address, refused)
        self._pool.forget(address)
