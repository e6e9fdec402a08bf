"""The service manager's end of notifications."""

from __future__ import annotations

import socket
import time

PATIENCE_S = 60.0


class Ear:
    """The manager's end of NOTIFY_SOCKET."""

    def __init__(self, address: str) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(address)
        self._socket.settimeout(PATIENCE_S)

    def hear(self) -> list[str]:
        """Return the lines of the next datagram."""
        return self._socket.recv(4096).decode().splitlines()

    def hear_until(self, word: str) -> list[str]:
        """Return all lines up to this one."""
        heard: list[str] = []
        deadline = time.monotonic() + PATIENCE_S
        while word not in heard:
            assert time.monotonic() < deadline, heard
            heard += self.hear()
        return heard

    def close(self) -> None:
        self._socket.close()
