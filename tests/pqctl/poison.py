"""A proxy in front of a real server that adds control sequences of terminals to its answers."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from contextlib import suppress

PIECE_BYTES = 65_536
LOUD = b"\x1b]0;gotcha\x07\x1b[2J\x9b31m\x08\xe2\x80\xae"       # title, clear, C1, backspace, right to left

Said = Callable[[bytes], bytes]

# What replaces what, in its length, as the data of jobs and tables are counted.
NAMES = {
    b"evil": b"\x1b[1m", b"n1": b"\x1bc", b"1.0.": b"\x1b[2J", b"node": b"\x1b[5m", b"rc": b"\x08\x07",
}
HEARD = re.compile(b"|".join(map(re.escape, NAMES)))
BACK = {lie: word for word, lie in NAMES.items()}
TOLD = re.compile(b"|".join(map(re.escape, BACK)))


def names(data: bytes) -> bytes:
    """Replace names, versions and words of the server by escape sequences of the same length."""
    return HEARD.sub(lambda found: NAMES[found[0]], data)


def refusals(data: bytes) -> bytes:
    """Turn all answers into refusals, except those with the server's identity: these have figures only."""
    return data if re.match(rb"200 OK( \d+)?\r\n|200 OK [0-9a-f]{16} ", data) else b"409 Not " + LOUD + b" Possible\r\n"


def rubbish(data: bytes) -> bytes:
    """Poison all answers, from the first word on."""
    return LOUD + b"\r\n" + data


class Poison:
    """Listens for pqctl, and passes everything on to a real server; `said` turns its bytes into what pqctl receives."""

    def __init__(self, server: str, said: Said) -> None:
        self._server = server.rpartition(":")
        self._said = said
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Stop accepting connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near = self._listener.accept()[0]
                far = socket.create_connection((self._server[0], int(self._server[2])))
                for one, other, change in ((near, far, self._asked), (far, near, self._told)):
                    threading.Thread(target=_pass, args=(one, other, change), daemon=True).start()

    def _asked(self, data: bytes) -> bytes:
        return TOLD.sub(lambda found: BACK[found[0]], data)

    def _told(self, data: bytes) -> bytes:
        """Replace the server's address by this one, so that all of pqctl's connections come here."""
        port, own = self._server[2].encode(), self.address.rpartition(":")[2].encode()
        return self._said(data.replace(b" " + port, b" " + own).replace(b":" + port, b":" + own))


def _pass(one: socket.socket, other: socket.socket, change: Said) -> None:
    with suppress(OSError):
        while data := one.recv(PIECE_BYTES):
            other.sendall(change(data))
    for connection in (one, other):
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
