"""Opens listening sockets, and accepts only some connections from them in each turn of the event loop.

asyncio and uvloop accept everything that is pending before they do anything else, so a flood of connections delays
those that are there. Once file descriptors run out they retry in a busy loop or stop accepting altogether.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable

ACCEPTS_PER_TURN = 32       # connections that are accepted before others have a turn,
EXHAUSTED_S = 0.5           # and the pause when file descriptors have run out


async def open_sockets(host: str, port: int, backlog: int, *, reuse_port: bool = False) -> list[socket.socket]:
    """Open listening sockets for host ("": all) and port (0: any free one), one for each address.

    `backlog`: the connections that the kernel keeps until they are accepted; `reuse_port`: other processes may listen
    on the same port. Raises OSError.
    """
    found = await asyncio.get_running_loop().getaddrinfo(
        host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    sockets: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            sockets.append(socket.create_server(address, family=family, backlog=backlog, reuse_port=reuse_port))
            sockets[-1].setblocking(False)
    except OSError:
        for opened in sockets:
            opened.close()
        raise
    return sockets


class Acceptor:
    """Accepts connections from its sockets until it is closed."""

    def __init__(
        self, sockets: list[socket.socket], take: Callable[[socket.socket, str], float], log: logging.Logger,
    ) -> None:
        """`take` is called with each connection and the address of its client.

        It returns the seconds for which nothing more is accepted from that socket, usually 0.0. `log`: for what goes
        wrong.
        """
        self.sockets = sockets
        self._take = take
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._pauses: dict[socket.socket, asyncio.TimerHandle] = {}
        for listening in sockets:
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Stop accepting, and close the sockets."""
        for listening in self.sockets:
            if listening in self._pauses:
                self._pauses.pop(listening).cancel()
            else:
                self._loop.remove_reader(listening)
            listening.close()
        self.sockets = []

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            try:
                accepted, address = listening.accept()
            except (BlockingIOError, ConnectionError):      # none is waiting, or it is gone already
                return
            except OSError as error:                        # no descriptors, or no memory for another connection
                self._log.warning(
                    "cannot accept connections: %s. If file descriptors have run out, raise LimitNOFILE.", error)
                self._pause(listening, EXHAUSTED_S)
                return
            pause_s = self._take(accepted, address[0])
            if pause_s:
                self._pause(listening, pause_s)
                return

    def _pause(self, listening: socket.socket, seconds: float) -> None:
        """Accept nothing from this socket for so long."""
        self._loop.remove_reader(listening)
        self._pauses[listening] = self._loop.call_later(seconds, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        del self._pauses[listening]
        self._loop.add_reader(listening, self._accept, listening)
