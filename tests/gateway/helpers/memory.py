"""A gateway in memory: real connections over transports that are buffers, in front of the fake cluster."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor, Future
from hashlib import sha256
from pathlib import Path
from typing import Any

from sockpqd.cluster import RefusalLog
from sockpqd.gateway.auth.authenticator import Access
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.limits import Limits
from sockpqd.gateway.protocol.verbs import Verbs
from sockpqd.gateway.server.connection import Connection
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import Port
from tests.gateway.helpers.fake_cluster import FakeCluster


class AtOnce(Executor):
    """Executes each task at once, without threads."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def access_of(users: Mapping[str, Account] | None) -> Access:
    """Return an access with these users in its file, or without a file. Refusals come at once, nonces in a known order.
    """
    access = Access(None if users is None else lambda: dict(users))
    access.failure_s = 0
    access.threads = AtOnce()
    numbers = itertools.count(1)
    access.new_nonce = lambda: sha256(b"%d" % next(numbers)).digest()
    return access


class NoSocket:
    """Stands for the socket, whose options do not matter here."""

    info = bytes(60)            # TCP_INFO

    def setsockopt(self, *arguments: int) -> None:
        """Do nothing."""

    def getsockopt(self, *arguments: int) -> bytes:
        """Return TCP_INFO, the only option that is asked for."""
        return self.info


class MemoryTransport(asyncio.Transport):
    """Keeps what is written until the test takes it. With `stuck` the peer reads nothing."""

    def __init__(self, connection: Connection, peer: str) -> None:
        self.socket = NoSocket()
        super().__init__({"peername": (peer, 1), "socket": self.socket})
        self._connection = connection
        self._written = bytearray()
        self.ended = False          # the write side is shut down
        self.closed = False
        self.aborted = False
        self.reading = True
        self.stuck = False
        self.writes = 0
        self._high = 1 << 16
        self._full = False

    def take(self) -> bytes:
        """Return what was written since the last call."""
        data = bytes(self._written)
        self._written.clear()
        if self._full:
            self._full = False
            self._connection.resume_writing()
        return data

    def write(self, data: bytes) -> None:    # type: ignore[override]
        if self.closed:
            return
        assert not self.ended, "written after the end"
        self.writes += 1
        self._written += data
        if self.stuck and not self._full and len(self._written) > self._high:
            self._full = True
            self._connection.pause_writing()

    def get_write_buffer_size(self) -> int:
        return len(self._written) if self.stuck else 0

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = high or self._high

    def write_eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        if not self.closed:
            self.closed = self.ended = True
            asyncio.get_running_loop().call_soon(self._connection.connection_lost, None)

    def abort(self) -> None:
        self.aborted = True
        self.close()

    def pause_reading(self) -> None:
        self.reading = False

    def resume_reading(self) -> None:
        self.reading = True


class MemoryClient:
    """One client of a MemoryGateway."""

    def __init__(self, hub: Hub, name: str, user: str | None = None, *, secure: bool = True) -> None:
        self._connection = Connection(hub, Port(user), RefusalLog(logging.getLogger()))
        self.transport = MemoryTransport(self._connection, name)
        self._connection.connection_made(self.transport)
        self._connection.secure = secure

    def send(self, data: bytes) -> None:
        """Send bytes as the client."""
        if not self.transport.closed:
            self._connection.data_received(data)

    def end(self) -> None:
        """Shut down the client's write side (FIN)."""
        if not self.transport.closed and not self._connection.eof_received():
            self.transport.close()

    def vanish(self) -> None:
        """Break the connection, as a crash of the client's host does."""
        self.transport.abort()

    def take(self) -> bytes:
        """Return what the server answered since the last call."""
        return self.transport.take()

    @property
    def closed(self) -> bool:
        """True if the server has closed, or begun to."""
        return self.transport.ended


class MemoryGateway:
    """A hub in front of a fake cluster, and its clients."""

    def __init__(
        self, folder: Path, limits: Limits | None = None, users: Mapping[str, Account] | None = None, *,
        automatic: bool = True, verbs: Verbs = VERBS,
    ) -> None:
        self.stop_reasons: list[str] = []
        self.hub = Hub(
            limits or Limits(), folder, offline_close=True, shut_down=self.stop_reasons.append, access=access_of(users),
            verbs=verbs,
        )
        self.cluster = FakeCluster(automatic=automatic)
        self.hub.attach(self.cluster)
        # A session is called by these, in rising order, so that transcripts always go the same way.
        self.hub.new_secret = itertools.count(0x9f3c5a7e11d0c2b4).__next__
        self.cluster.start(self.hub)
        self.clients: list[MemoryClient] = []

    def connect(self, name: str = "client", user: str | None = None, *, secure: bool = True) -> MemoryClient:
        """Return a new client; `user` as on a port for clients that cannot say AUTH."""
        client = MemoryClient(self.hub, name, user, secure=secure)
        self.clients.append(client)
        return client

    async def settle(self) -> None:
        """Let the loop run until nothing moves."""
        for _ in range(40):
            await asyncio.sleep(0)

    async def talk(self, data: bytes) -> bytes:
        """Return what one client gets that sends these bytes."""
        client = self.connect()
        client.send(data)
        await self.settle()
        return client.take()

    async def close(self) -> None:
        """Drop all clients, so that no timer is left."""
        for client in self.clients:
            client.vanish()
        await self.settle()


def with_gateway(
    test: Callable[[MemoryGateway], Awaitable[None]], limits: Limits | None = None, *, automatic: bool = True,
    folder: Path = Path("unused"), users: Mapping[str, Account] | None = None,
) -> None:
    async def run() -> None:
        gateway = MemoryGateway(folder, limits, users, automatic=automatic)
        try:
            await test(gateway)
        finally:
            await gateway.close()
    asyncio.run(run())


async def attached(gateway: MemoryGateway, command: bytes = b"SESSION\r\n") -> MemoryClient:
    """Return a client with a session."""
    client = gateway.connect()
    client.send(command)
    await gateway.settle()
    gateway.cluster.commit()
    await gateway.settle()
    assert client.take().startswith(b"200 OK SESSION ")
    return client
