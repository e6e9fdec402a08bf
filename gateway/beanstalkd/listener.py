"""Listens for clients of beanstalkd, and executes the calls that other nodes forward."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import ssl
from collections.abc import Callable
from typing import cast

import msgspec

from sockpqd.beanstalk import BeanstalkdServer, CallFailure, ClientConnection, Stay
from sockpqd.cluster import CALL_BYTES_MAX
from sockpqd.cluster.api import RunningCall
from sockpqd.connections import SlotKind
from sockpqd.gateway.beanstalkd.backend import NodeBackend
from sockpqd.gateway.beanstalkd.call_account import CountedCall, weight_of
from sockpqd.gateway.beanstalkd.execution import OperationExecution
from sockpqd.gateway.beanstalkd.lookups import look_up
from sockpqd.gateway.beanstalkd.remote import Outcome, Remote, RemoteRead, decode_remote, encode
from sockpqd.gateway.beanstalkd.services import NodeServices, Principal
from sockpqd.gateway.beanstalkd.sessions import NodeSessions
from sockpqd.gateway.server.doors import BEANSTALKD, Door, Doors
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import Port

log = logging.getLogger("sockpqd.gateway")

LOOK_S = 0.5                    # how often it is looked whether there is a leader
LEADERLESS_S = 5.0              # without a leader for this long this node stops listening
KEEP_S = 3.0                    # how often the sessions of this node are used
END_S = 2.0                     # for which the end of the node waits for jobs to go back


def execute_call(
    hub: Hub, user: str | None, address: str, data: bytes, on_outcome: Callable[[bytes | None], None],
) -> RunningCall:
    """Execute a call that another node has received.

    It takes its share of the turn's budget, like a command of a local client, and waits for another turn if the budget
    is used up. An outcome too large for the link between the nodes is OUT_OF_MEMORY.
    """
    try:
        remote = decode_remote(data)
    except msgspec.MsgspecError:
        log.warning("%s: cannot decode a forwarded call from another version", address)
        on_outcome(encode(CallFailure.GONE))
        return Ended()
    held_bytes, cost = weight_of(remote, data)
    principal = Principal(user, address)
    if not held_bytes:
        return _in_turn(hub, cost, lambda: _execute(hub, principal, remote, on_outcome))
    counted = CountedCall(hub.account, held_bytes, on_outcome)
    return counted.done_by(_in_turn(hub, cost, lambda: _execute(hub, principal, remote, counted.tell)))


def _in_turn(hub: Hub, cost: int, execute: Callable[[], RunningCall]) -> RunningCall:
    if hub.budget > 0:
        hub.budget -= cost
        return execute()
    queued = QueuedCall(hub, cost, execute)
    hub.call_in_turn(queued.begin)
    return queued


def _execute(
    services: NodeServices, principal: Principal, remote: Remote, on_outcome: Callable[[bytes | None], None],
) -> RunningCall:
    def report(outcome: Outcome) -> None:
        data = encode(outcome)
        on_outcome(data if len(data) <= CALL_BYTES_MAX else encode(CallFailure.OUT_OF_MEMORY))

    if isinstance(remote, RemoteRead):
        report(look_up(services, principal, remote.call))
        return Ended()
    execution = OperationExecution(services, principal, report)
    execution.begin(remote.operation, remote.wait_ms, first=remote.first)
    return execution


class QueuedCall:
    """A forwarded call that waits for another turn."""

    def __init__(self, hub: Hub, cost: int, execute: Callable[[], RunningCall]) -> None:
        self._hub = hub
        self._cost = cost
        self._execute = execute
        self._running: RunningCall | None = None
        self._cancelled = False

    def begin(self) -> None:
        """Execute it, as its turn has come."""
        self._hub.budget -= self._cost
        self._running = self._execute()
        if self._cancelled:
            self._running.cancel()

    def cancel(self) -> None:
        self._cancelled = True
        if self._running is not None:
            self._running.cancel()


class Ended:
    """A forwarded call that has its outcome already."""

    def cancel(self) -> None: ...


class BeanstalkdConnection(ClientConnection):
    """A client's connection, registered with the node."""

    def __init__(self, listener: BeanstalkdListener) -> None:
        self._listener = listener
        self._principal = Principal(listener.port.user, "")
        super().__init__(listener.server, listener.backend(self._principal), listener)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a client, or close it at once if its network or the limits do not allow it."""
        listener = self._listener
        host, number = (transport.get_extra_info("peername") or ("", 0))[:2]        # empty: it is gone already
        if host and not listener.port.admits(host):
            listener.complaints.refused((host, number), "it is in none of the networks of the listener for beanstalkd")
            cast(asyncio.Transport, transport).abort()
            return
        self._principal.peer = f"{host}:{number}"
        super().connection_made(transport)


class BeanstalkdListener:
    """The listener of one node. `address`: "host:port"; without a host all addresses of the machine."""

    def __init__(
        self, hub: Hub, doors: Doors, address: tuple[str, int], port: Port, *, job_bytes_max: int,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self.port = port
        self.complaints = doors.complaints
        cluster = hub.cluster
        self.server = BeanstalkdServer(
            secrets.token_hex(8), body_bytes_max=job_bytes_max, now=asyncio.get_running_loop().time,
            draining=lambda: not cluster.online, turns=hub,
        )
        self._hub = hub
        self._doors = doors
        self._services: NodeServices = hub
        self._cluster = cluster
        self._address = address
        self._context = context
        self._sessions = NodeSessions()
        self._door: Door | None = None
        self._tasks: list[asyncio.Task[None]] = []

    async def start(self) -> tuple[str, int]:
        """Start listening; returns the address listened on. Raises OSError."""
        address = await self._open()
        loop = asyncio.get_running_loop()
        self._tasks = [loop.create_task(self._watch()), loop.create_task(self._keep())]
        return address

    async def close(self) -> None:
        """Close the connections; if there is a leader, their jobs are put back first."""
        for task in self._tasks:
            task.cancel()
        self._stop_listening()
        self.server.hang_up()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                while self.server.connections:
                    await asyncio.sleep(0.01)

    def backend(self, principal: Principal) -> NodeBackend:
        """Return the backend of a new connection."""
        return NodeBackend(self._services, self._sessions, principal)

    # ---- Host

    def receive(self, transport: asyncio.BaseTransport, connection: ClientConnection) -> Stay | None:
        """See Host. No client can authenticate here as an administrator, so none gets one of the extra places."""
        accepted = self._hub.connection_manager.receive(transport, connection)
        if accepted.slot is SlotKind.PROVISIONAL:
            accepted.leave()
        return None if accepted.slot is SlotKind.REFUSED else accepted

    def hold(self, connection: ClientConnection, held_bytes: int) -> None:
        self._hub.account.hold(connection, held_bytes)

    def no_room(self) -> bool:
        return self._hub.no_room() is not None

    # ---- listening

    async def _open(self) -> tuple[str, int]:
        self._door = await self._doors.open(
            BEANSTALKD, *self._address, lambda: BeanstalkdConnection(self), self._context)
        host, number = self._door.address
        self._address = self._address[0], number
        return host, number

    def _stop_listening(self) -> None:
        if self._door is not None:
            self._door.close()
            self._door = None

    async def _watch(self) -> None:
        """Listen while there is a leader, so that health checks and clients find a node that can serve them."""
        loop = asyncio.get_running_loop()
        known_at = loop.time()
        while True:
            await asyncio.sleep(LOOK_S)
            if self._cluster.leader() is not None:
                known_at = loop.time()
                if self._door is None:
                    with contextlib.suppress(OSError):
                        await self._open()
                        log.info("there is a leader: this node listens for clients of beanstalkd again")
            elif self._door is not None and loop.time() - known_at > LEADERLESS_S:
                log.warning("no leader for %.0f s: this node does not listen for clients of beanstalkd", LEADERLESS_S)
                self._stop_listening()

    async def _keep(self) -> None:
        """Use the sessions of this node from time to time, so that they do not expire."""
        while True:
            await asyncio.sleep(KEEP_S)
            for portion in self._sessions.portions():
                kept = asyncio.Event()
                NodeBackend(self._services, self._sessions, Principal(None, "")).keep(portion, kept.set)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(KEEP_S):
                        await kept.wait()
