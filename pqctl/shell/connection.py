"""A connection to one server: sends bytes; a thread passes on received bytes as they arrive."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from collections.abc import Callable

from sockpqd.pqctl.access import ClusterAccess

QUIET_S = 0.03          # an answer has come when nothing more has for this long
PIECE_BYTES = 65536


class Line:
    """A connection. A thread of its own calls `got` with everything received."""

    def __init__(self, server: str, access: ClusterAccess, timeout: float, got: Callable[[bytes], None]) -> None:
        host, _, port = server.rpartition(":")
        host = host.removeprefix("[").removesuffix("]")
        self.server = server
        self._socket = socket.create_connection((host, int(port)), timeout)
        if access.tls is not None:
            context = ssl.create_default_context(cafile=access.tls if isinstance(access.tls, str) else None)
            self._socket = context.wrap_socket(self._socket, server_hostname=host)
        self._socket.settimeout(None)
        self._got = got
        self._changed = threading.Condition()
        self._received = 0          # bytes since the last send()
        self._last_at = 0.0
        self.closed = False
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def send(self, data: bytes) -> None:
        with self._changed:
            self._received = 0
        self._socket.sendall(data)

    def wait(self) -> int:
        """Wait for an answer to the sent bytes, or until the connection is closed; returns the bytes received."""
        with self._changed:
            while not self.closed:
                if not self._received:
                    self._changed.wait()
                    continue
                rest = self._last_at + QUIET_S - time.monotonic()
                if rest <= 0:
                    break
                self._changed.wait(rest)
            return self._received

    def finish(self) -> None:
        """Announce that nothing more will be sent, and wait until everything was answered."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._thread.join()
        self.close()

    def close(self) -> None:
        """Close the connection and end its thread."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()

    def _read(self) -> None:
        while True:
            try:
                data = self._socket.recv(PIECE_BYTES)
            except OSError:
                data = b""
            if data:
                self._got(data)
            with self._changed:
                self._received += len(data)
                self._last_at = time.monotonic()
                self.closed = not data
                self._changed.notify_all()
            if not data:
                return
