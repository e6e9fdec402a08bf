"""A server on a real loop and sockets in front of the fake cluster, and its clients."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from pathlib import Path

from sockpqd.gateway.limits import Limits
from sockpqd.gateway.server.doors import Doors
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.server import Server
from tests.gateway.helpers.fake_cluster import FakeCluster

PATIENCE_S = 60.0       # far more than anything takes


class Client:
    """A TCP client that reads bytes and lines."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def line(self) -> bytes:
        return await asyncio.wait_for(self.reader.readline(), PATIENCE_S)

    async def exactly(self, count: int) -> bytes:
        return await asyncio.wait_for(self.reader.readexactly(count), PATIENCE_S)

    async def rest(self) -> bytes:
        """Return everything until the server closes."""
        return await asyncio.wait_for(self.reader.read(-1), PATIENCE_S)

    def reset(self) -> None:
        """Reset the connection, without FIN."""
        connection = self.writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


class Gateway:
    """The server under test and its clients."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.hub = Hub(limits or Limits(), Path("unused"), offline_close=True, shut_down=lambda reason: None)
        self.cluster = FakeCluster()
        self.hub.attach(self.cluster)
        self.doors = Doors(self.hub.connection_manager)
        self.server = Server(self.hub, self.doors)
        self.address = ("", 0)
        self._clients: list[Client] = []

    async def start(self) -> tuple[str, int]:
        self.cluster.start(self.hub)
        self.address = await self.server.start("127.0.0.1", 0)
        return self.address

    async def connect(self, receive_buffer: int | None = None) -> Client:
        connection = socket.socket()
        connection.setblocking(False)
        if receive_buffer is not None:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        await asyncio.get_running_loop().sock_connect(connection, self.address)
        client = Client(*await asyncio.open_connection(sock=connection, limit=1 << 16))
        self._clients.append(client)
        return client

    async def talk(self, data: bytes) -> bytes:
        """Return what a client gets that sends this and FIN, as `printf .. | nc` does."""
        client = await self.connect()
        client.send(data)
        client.writer.write_eof()
        return await client.rest()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Wait for something that must happen."""
        deadline = asyncio.get_running_loop().time() + PATIENCE_S
        while not condition():
            assert asyncio.get_running_loop().time() < deadline, "it did not happen"
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        for client in self._clients:
            client.writer.transport.abort()
        await self.server.close()
