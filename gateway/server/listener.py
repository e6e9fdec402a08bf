"""Accepting connections, few of them in each round of the loop.

The loops of asyncio and uvloop accept whatever waits before they do anything else: a flood of connections keeps clients
waiting and heartbeats late. Without file descriptors they try again and again, or stop accepting.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

from gateway.limits import ACCEPTS_PER_ROUND, EXHAUSTED_S

log = logging.getLogger("sockpqd.gateway")


async def open_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Listening sockets for host and port (0: a free one), on each address of the host. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            sockets.append(socket.create_server(address, family=family, backlog=backlog))
            sockets[-1].setblocking(False)
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return sockets


class Listener:
    """Makes a protocol for each connection to one of the sockets."""

    def __init__(self, sockets: list[socket.socket], protocol: Callable[[], asyncio.Protocol]) -> None:
        self._sockets = sockets
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Accept no more."""
        for listening in self._sockets:
            if listening in self._pauses:
                self._pauses.pop(listening).cancel()
            else:
                self._loop.remove_reader(listening)
            listening.close()
        self._sockets = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_ROUND):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, ConnectionError):      # nobody waits, or who did has gone
                return
            except OSError as error:
                self._pause(listening, error)
                return
            connection.setblocking(False)
            task = self._loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _serve(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError:                                     # it has gone already
            connection.close()

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        """There are no descriptors, or no memory for another connection."""
        log.warning("no connection can be accepted: %s. If files are meant, raise their limit (LimitNOFILE).", error)
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(EXHAUSTED_S, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)
