"""A proxy that ends both directions of a connection when one has ended, and loses a job on its way."""

from __future__ import annotations

import contextlib
import socket
import threading
import time

from devcluster.ports import HOST, free_ports

LATER_S = 0.05              # what it takes for an answer
HANDED = b"q "             # in an answer: a job


class HastyProxy:
    """Passes bytes on, answers a little later. It ends both directions of a connection as soon as one has ended, as
    toxiproxy does. The first job that is handed out through it is lost, and with `lose` the connection.
    """

    def __init__(self, upstream: str) -> None:
        host, port = upstream.split(":")
        self._upstream = (host, int(port))
        self._listener = socket.create_server((HOST, *free_ports(1)))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._to: socket.socket | None = None       # the client that does not get the job
        self.lost = threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def lose(self) -> None:
        assert self._to is not None
        _end(self._to)

    def close(self) -> None:
        _end(self._listener)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._upstream)
                threading.Thread(target=self._pass_on, args=[client, server], daemon=True).start()
                threading.Thread(target=self._answer, args=[server, client], daemon=True).start()

    def _pass_on(self, client: socket.socket, server: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(65536):
                server.sendall(data)
        _end(server)
        _end(client)

    def _answer(self, server: socket.socket, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(65536):
                if HANDED in data and not self.lost.is_set():
                    self._to = client
                    self.lost.set()
                else:
                    time.sleep(LATER_S)
                    client.sendall(data)
        _end(server)
        _end(client)


def _end(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    connection.close()
