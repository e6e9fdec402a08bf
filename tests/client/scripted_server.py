"""A server scripted by a test, byte by byte for each connection; it keeps no queues."""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import threading
from collections.abc import Callable
from types import TracebackType
from typing import BinaryIO

from devcluster.ports import HOST, free_ports

Answering = Callable[[socket.socket, BinaryIO, str], object]

JOB = b"200 OK q 7 0 10\r\n0123456789"


class ScriptedServer:
    """`answer` gets the connection, its input and each command's line without REQ; sessions, CAPS, CLUSTER ID
    and CLUSTER STATUS are answered here.

    `features`: its CAPS; by default it is of a version before those this client looks for.
    Without `answer` each connection is reset as soon as it is open.
    """

    def __init__(
        self, answer: Answering | None, tls: ssl.SSLContext | None = None, features: tuple[str, ...] = (),
        identified: bool = False,
    ) -> None:
        """`identified`: CLUSTER ID is for `answer`, too."""
        self._answer = answer
        self._features = "".join(f"{word}\n" for word in features).encode()
        self._tls = tls
        self._identified = identified
        self._listener = socket.create_server((HOST, *free_ports(1)))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._ends: list[socket.socket] = [self._listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listener.accept()
                self._ends.append(connection)
                if self._answer is None:
                    reset(connection)
                    continue
                threading.Thread(target=self._serve, args=[connection], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), contextlib.ExitStack() as stack:
            if self._tls:
                connection = self._tls.wrap_socket(connection, server_side=True)
                self._ends.append(connection)
            stream = stack.enter_context(stack.enter_context(connection).makefile("rb"))
            while line := stream.readline().decode().rstrip():
                verb, *words = line.split()
                if verb == "SESSION":
                    last = b"" if words[0] == "TTL" else b" LAST 0"
                    connection.sendall(b"200 OK SESSION 1_ab TTL 900" + last + b"\r\n")
                elif verb == "CAPS":
                    connection.sendall(b"200 OK %d\r\n" % len(self._features) + self._features)
                elif line == "CLUSTER ID" and not self._identified:
                    connection.sendall(b"400 Bad Command\r\n")
                elif line == "CLUSTER STATUS":
                    connection.sendall(b"400 Bad Arguments\r\n")
                elif self._answer:
                    self._answer(connection, stream, " ".join(words[1:]) if verb == "REQ" else line)


def reset(connection: socket.socket) -> None:
    """Return an answer that ends the connection with a RST."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    socket.socket(fileno=connection.detach()).close()


def trickle(connection: socket.socket) -> None:
    """Return an answer whose body never ends, and never pauses for long."""
    connection.sendall(b"200 OK q 7 0 4000000000\r\n")
    while True:
        connection.sendall(b"x" * 1000)
