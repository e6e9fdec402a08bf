"""Serves each connection that is accepted in a task of its own."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import socket
from collections.abc import Callable, Coroutine
from typing import Any

from sockpqd.connections.accepting import Acceptor

log = logging.getLogger("sockpqd.gateway")


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
        self._serve = serve
        self._pause_s = pause_s
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._acceptor = Acceptor(sockets, self._take, log)

    def close(self) -> None:
        """Stop accepting and close the sockets."""
        self._acceptor.close()

    def _take(self, connection: socket.socket, address: str) -> float:
        connection.setblocking(False)
        pause_s = self._pause_s()
        task = self._loop.create_task(self._serve(connection))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return pause_s
