"""One connection to one server, command by command, as a client of the original has it."""

from __future__ import annotations

import socket
import time
from contextlib import suppress


class Refused(Exception):  # noqa: N818
    """A line that says that the command was not executed."""


class Broken(Exception):  # noqa: N818
    """The connection ended, fell silent, or said what nobody expects. `sent`: all of the command left this process."""

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


class Wire:
    """A connection. Not for several threads, except `close`."""

    def __init__(self, address: str, timeout: float) -> None:
        """`timeout` in seconds, for connecting and for each read. Raises Broken."""
        host, _, port = address.rpartition(":")
        try:
            self._socket = socket.create_connection((host, int(port)), timeout)
        except OSError as error:
            raise Broken(f"{address}: {error}", sent=False) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timeout = timeout
        self._received = b""

    def close(self) -> None:
        """End it; a thread that waits on it wakes up."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def finish(self) -> None:
        """Send no more: what is blocked is withdrawn."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise Broken(str(error)) from error

    def send(self, line: str, data: bytes = b"") -> None:
        """Send a command."""
        rest = memoryview(f"{line}\r\n".encode() + data)
        try:
            self._socket.settimeout(self._timeout)
            while rest:
                rest = rest[self._socket.send(rest):]
        except OSError as error:
            raise Broken(str(error), sent=not rest) from error

    def line(self, wait: float | None = None) -> str:
        """The next line of an answer, within `wait` seconds if given. Raises TimeoutError only if `wait` is given."""
        until = time.monotonic() + (self._timeout if wait is None else wait)
        while b"\r\n" not in self._received:
            self._receive(until, patient=wait is not None and not self._received)
        line, _, self._received = self._received.partition(b"\r\n")
        return line.decode("ascii", "replace")

    def exactly(self, length: int) -> bytes:
        """The next bytes of an answer."""
        until = time.monotonic() + self._timeout
        while len(self._received) < length:
            self._receive(until)
        data, self._received = self._received[:length], self._received[length:]
        return data

    def say(self, line: str, data: bytes = b"") -> str:
        """Send a command and return the first line of its answer."""
        self.send(line, data)
        return self.line()

    def _receive(self, until: float, *, patient: bool = False) -> None:
        try:
            self._socket.settimeout(max(until - time.monotonic(), 0.001))
            piece = self._socket.recv(65_536)
        except TimeoutError as error:
            if patient:
                raise
            raise Broken("silent") from error
        except OSError as error:
            raise Broken(str(error)) from error
        if not piece:
            raise Broken("closed")
        self._received += piece


def server_number(address: str, timeout: float) -> int | None:
    """What this server answers to INTERCONNECT; None when it does not."""
    try:
        wire = Wire(address, timeout)
    except Broken:
        return None
    try:
        words = wire.say("INTERCONNECT").split()
        return int(words[2]) if words[:2] == ["200", "OK"] else None
    except (Broken, ValueError, IndexError):
        return None
    finally:
        wire.close()
