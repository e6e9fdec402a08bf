"""Subscribers on all nodes during the load: each records the events it receives, and resumes FROM its position.

One listens at each node, to all types and to the messages sent during the load; a last one never reads, and must do no
harm by that. When its connection ends a listener reconnects to its node, and asks for the events it missed. All
received events are judged by checker/received.py.
"""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping
from types import TracebackType

from sockpqd.core import EVENT_TYPES
from tests.chaos.workload.heard import Ear, Heard

CHANNEL = "chaos"
CONNECT_S = 2.0
SILENT_S = 3.0              # no line for so long: is the node still there?
AGAIN_S = 0.05
SEND_S = 0.02               # between two messages
HEARD_S = 2.0               # how long a message may take
LAST_S = 30.0               # until all have received the last message and the last event
TYPES = "|".join((*EVENT_TYPES, "MSG"))


class Listeners:
    """All of them, until the block ends."""

    def __init__(self, servers: Mapping[str, str], heard: Heard) -> None:
        """`servers`: the address of each node as clients dial it."""
        self._servers = servers
        self._heard = heard
        self._stopping = threading.Event()
        self._quiet = threading.Event()
        self._threads = [
            threading.Thread(target=self._listen, args=(name, heard.ear(name)), name=f"listener at {name}", daemon=True)
            for name in servers
        ]
        self._sender = threading.Thread(target=self._send, name="sender of messages", daemon=True)
        self._frozen: list[socket.socket] = []
        self._number = 0                    # of the last message

    def __enter__(self) -> Listeners:
        for thread in self._threads:
            thread.start()
        until = time.monotonic() + LAST_S
        while not all(ear.listening for ear in self._heard.ears.values()) and time.monotonic() < until:
            time.sleep(AGAIN_S)
        for server in self._servers.values():
            frozen = _connect(server)
            frozen.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            frozen.sendall(f"SUBSCRIBE {TYPES}\r\n".encode())
            self._frozen.append(frozen)
        self._sender.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._quiet.set()
        self._stopping.set()
        for thread in (*self._threads, self._sender):
            if thread.ident is not None:
                thread.join(LAST_S)
        for frozen in self._frozen:
            frozen.close()

    def finish(self) -> None:
        """Send only what is needed until every subscriber has received the newest event and the last message."""
        self._quiet.set()
        self._sender.join(LAST_S)
        until = time.monotonic() + LAST_S
        while not self._heard.level() and time.monotonic() < until:
            self._say()
            at = time.monotonic() + HEARD_S
            while not self._heard.level() and time.monotonic() < at:
                time.sleep(AGAIN_S)
        self._heard.all_came_to_the_end = self._heard.level()

    # ---- threads

    def _listen(self, name: str, ear: Ear) -> None:
        while not self._stopping.is_set():
            try:
                with _connect(self._servers[name]) as connection:
                    self._subscribed(connection, ear)
            except (OSError, EOFError):
                pass
            finally:
                ear.left()
            time.sleep(AGAIN_S)

    def _subscribed(self, connection: socket.socket, ear: Ear) -> None:
        connection.settimeout(SILENT_S)
        lines = _Lines(connection)
        for begin in ("" if ear.position is None else f" FROM {ear.position}", ""):
            connection.sendall(f"SUBSCRIBE {TYPES}{begin}\r\n".encode())
            answer = lines.line()
            if answer.startswith(b"200 OK"):
                ear.begun(int(answer.split()[2]), again=bool(begin))
                break
            assert answer == b"409 Too Old\r\n", answer
        else:
            raise AssertionError("a subscription without FROM is never too old")
        pinged = False
        while not self._stopping.is_set():
            try:
                line = lines.line()
            except TimeoutError:
                if pinged:
                    raise
                pinged = True
                connection.sendall(b"PING\r\n")
                continue
            pinged = False
            if line.startswith(b"250 "):
                words = line.split()
                ear.hear(words, lines.read(int(words[4])) if words[2] == b"MSG" else b"")
            else:
                assert line.startswith(b"200 OK"), line

    def _send(self) -> None:
        while not self._quiet.is_set():
            self._say()
            time.sleep(SEND_S)

    def _say(self) -> None:
        """Send the next message, to whichever node takes it; one of unknown outcome is not repeated."""
        self._number += 1
        data = b"%d" % self._number
        for server in self._servers.values():
            try:
                with _connect(server) as connection:
                    connection.settimeout(CONNECT_S)
                    connection.sendall(b"NOTIFY %s %d\r\n%s" % (CHANNEL.encode(), len(data), data))
                    if _Lines(connection).line().startswith(b"200 OK"):
                        self._heard.said(self._number)
                        return
            except (OSError, EOFError):
                return


class _Lines:
    """The lines that arrive on a connection; nothing is lost when a read takes too long."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._data = b""

    def line(self) -> bytes:
        """Return the next line. Raises TimeoutError, EOFError."""
        while b"\n" not in self._data:
            self._more()
        return self.read(self._data.index(b"\n") + 1)

    def read(self, size: int) -> bytes:
        """Return exactly this many bytes; waits for them."""
        while len(self._data) < size:
            self._more()
        found, self._data = self._data[:size], self._data[size:]
        return found

    def _more(self) -> None:
        data = self._connection.recv(1 << 16)
        if not data:
            raise EOFError
        self._data += data


def _connect(server: str) -> socket.socket:
    host, _, port = server.rpartition(":")
    return socket.create_connection((host.strip("[]"), int(port)), CONNECT_S)
