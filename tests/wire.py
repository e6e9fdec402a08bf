"""The tests' client: one connection to one server, command by command, with nothing between the test and the bytes.

Tests that speak something else than commands and answers (half a line, no TLS where there should be, many connections
that never read) open sockets of their own.
"""

from __future__ import annotations

import socket
import ssl
import struct
import time
from contextlib import suppress
from types import TracebackType
from typing import Self


class Refused(Exception):
    """A line that says that the command was not executed."""


class Broken(OSError):
    """The connection ended, fell silent, or sent an unexpected answer. `sent`: all of the command left this process."""

    def __init__(self, why: str, *, sent: bool = True) -> None:
        super().__init__(why)
        self.sent = sent


class Wire:
    """A connection. Not for several threads, except `close`."""

    def __init__(
        self, server: str, timeout: float, *, connect_timeout: float | None = None, source: str | None = None,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        """`server`: "host:port"; `timeout` in seconds, for each answer and, unless there is another, for connecting;
        `source`: the address to dial from; `tls`: for
        TLS. Raises Broken."""
        host, _, port = server.rpartition(":")
        try:
            self._socket = socket.create_connection(
                (host, int(port)), timeout if connect_timeout is None else connect_timeout,
                None if source is None else (source, 0),
            )
        except OSError as error:
            raise Broken(f"{server}: {error}", sent=False) from error
        if tls is not None:
            try:
                self._socket = tls.wrap_socket(self._socket, server_hostname=host)
            except OSError as error:
                self._socket.close()
                raise Broken(f"{server}: {error}", sent=False) from error
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._timeout = timeout
        self._received = bytearray()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """End it; a thread that waits on it wakes up."""
        with suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def vanish(self) -> None:
        """End it as a machine does that is gone and comes back: by a reset."""
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._socket.close()

    def finish(self) -> None:
        """Send no more: what is blocked is withdrawn."""
        try:
            self._socket.shutdown(socket.SHUT_WR)
        except OSError as error:
            raise Broken(str(error)) from error

    def send(self, line: str, data: bytes = b"") -> None:
        """Send a command. Raises Broken."""
        self.send_bytes(line.encode("latin-1") + b"\r\n" + data)

    def send_bytes(self, data: bytes) -> None:
        """Send commands as they are. Raises Broken."""
        rest = memoryview(data)
        try:
            self._socket.settimeout(self._timeout)
            while rest:
                rest = rest[self._socket.send(rest):]
        except OSError as error:
            raise Broken(str(error), sent=not rest) from error

    def line(self, wait: float | None = None) -> str:
        """The next line of an answer, within `wait` seconds if given. Raises Broken, TimeoutError only with `wait`."""
        until = time.monotonic() + (self._timeout if wait is None else wait)
        while b"\r\n" not in self._received:
            self._receive(until, patient=wait is not None and not self._received)
        line, _, self._received = self._received.partition(b"\r\n")
        return line.decode("latin-1")

    def exactly(self, length: int) -> bytes:
        """The next bytes of an answer. Raises Broken."""
        until = time.monotonic() + self._timeout
        while len(self._received) < length:
            self._receive(until)
        data = bytes(self._received[:length])
        del self._received[:length]
        return data

    def say(self, line: str, data: bytes = b"") -> str:
        """Send a command and return the first line of its answer. Raises Broken."""
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
    """Return what this server answers to INTERCONNECT; None when it does not."""
    try:
        with Wire(address, timeout) as wire:
            words = wire.say("INTERCONNECT").split()
            return int(words[2]) if words[:2] == ["200", "OK"] else None
    except (Broken, ValueError, IndexError):
        return None
