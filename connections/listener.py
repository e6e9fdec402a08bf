"""Accepts connections, only a few per iteration of the event loop.

asyncio and uvloop accept everything that is pending before they do anything else, so a flood of connections delays
clients and heartbeats. Once file descriptors run out they retry in a busy loop or stop accepting altogether.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from sockpqd.connections.limits import ACCEPTS_PER_ROUND, EXHAUSTED_S

log = logging.getLogger("sockpqd.gateway")


async def open_sockets(host: str, port: int, backlog: int) -> list[socket.socket]:
    """Open listening sockets for host ("": all) and port (0: any free one), one per address. Raises OSError."""
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
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


def unusable(key: str, address: str, error: OSError) -> OSError:
    """Return this error of an address to listen on, with the key of the configuration that has it and what to do."""
    number = error.errno or errno.EIO
    reason = os.strerror(number) if number > 0 else error.strerror      # negative: of getaddrinfo
    advice = {
        errno.EADDRINUSE: "another process listens there: end it, or choose another port",
        errno.EADDRNOTAVAIL: "this machine does not have that address",
        errno.EACCES: "ports below 1024 need a capability",
    }.get(number)
    return OSError(number, f'{key} = "{address}": {reason}' + (f" ({advice})" if advice else ""))


class Listener:
    """Accepts connections on its sockets and starts a task that serves each."""

    def __init__(
        self, sockets: list[socket.socket], serve: Callable[[socket.socket], Coroutine[Any, Any, None]],
        pause_s: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """`pause_s` returns how long to pause after each connection, 0.0 for no pause."""
        self._sockets = sockets
        self._serve = serve
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Stop accepting and close the sockets."""
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
            except (BlockingIOError, ConnectionError):      # none pending, or it is gone already
                return
            except OSError as error:                        # no descriptors or no memory for another connection
                log.warning("cannot accept connections: %s. If file descriptors have run out, raise LimitNOFILE.",
                            error)
                self._pause(listening, EXHAUSTED_S)
                return
            connection.setblocking(False)
            pause_s = self._pause_s()
            task = self._loop.create_task(self._serve(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            if pause_s:
                self._pause(listening, pause_s)
                return

    def _pause(self, listening: socket.socket, seconds: float) -> None:
        """Stop accepting on this socket for `seconds`."""
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(seconds, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)
