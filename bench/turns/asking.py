"""Connections that wait for something, one command each, and ask again as soon as they have received it."""

from __future__ import annotations

import re
import select
import socket
import time
from collections.abc import Sequence
from typing import NamedTuple

LOOK_S = 0.05
READ_BYTES = 1 << 16
GOT = re.compile(rb"200 OK \S+ (\d+) ")        # a ticket or a job


class Want(NamedTuple):
    """A client's request, and the result that it reports before the next request, with the number that it received."""

    ask: bytes
    tell: bytes = b""


def turn(pulse: str, *, result: bool = False) -> Want:
    """A turn of this pulse; a client may say that all went well."""
    return Want(f"PULSE WAIT {pulse}\r\n".encode(), b"PULSE RESULT %s OK\r\n" if result else b"")


def job(queue: str) -> Want:
    """A job of this queue, which is done at once."""
    return Want(f"GETB {queue}\r\n".encode(), b"DONE %s\r\n")


class AskingClients:
    """Connections to one server, one for each of `wants`."""

    def __init__(self, server: str, wants: Sequence[Want], spread_s: float = 0.0) -> None:
        """Connect and ask; `spread_s`: over this long a time."""
        host, _, port = server.rpartition(":")
        self._poll = select.epoll()
        self._sockets: dict[int, socket.socket] = {}
        self._wants: dict[int, Want] = {}
        begun = time.monotonic()
        for place, want in enumerate(wants):
            connection = socket.create_connection((host, int(port)))
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            number = connection.fileno()
            self._sockets[number], self._wants[number] = connection, want
            self._poll.register(connection, select.EPOLLIN)
            time.sleep(max(0.0, begun + spread_s * place / len(wants) - time.monotonic()))
            connection.send(want.ask)

    def run(self, seconds: float) -> list[float]:
        """Return when each answer was read."""
        seen: list[float] = []
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            for number, _ in self._poll.poll(LOOK_S, len(self._sockets)):
                connection, want = self._sockets[number], self._wants[number]
                data = connection.recv(READ_BYTES)
                if not data:
                    raise ConnectionError("the server has hung up: another one leads")
                for got in GOT.findall(data):
                    seen.append(time.monotonic())
                    connection.send((want.tell % got if want.tell else b"") + want.ask)
        return seen

    def close(self) -> None:
        for connection in self._sockets.values():
            connection.close()
        self._poll.close()
