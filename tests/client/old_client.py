"""A client like the original server's, PQD::Facade, written after its documentation.

It is synchronous, one command at a time. It connects to all servers at once and stays with the one that has the
smallest INTERCONNECT number until that connection ends; then it starts over. It compares status lines as strings, and
knows nothing of leaders, sessions or extensions. `retry` repeats any failed call, so that a job may be put twice.
What the original did when its server refuses for a long time is not known; this one then also starts over.
"""

from __future__ import annotations

import re
import socket
import time
from collections.abc import Callable
from contextlib import suppress
from typing import BinaryIO, TypeVar

T = TypeVar("T")

PAUSE_S = 0.05
REFUSED_S = 2.0         # so long it puts up with a server that refuses
JOB = re.compile(r"200 OK (\S+) (\d+) (-?\d+) (\d+)(?: IS (\S+))?")


class CommandError(Exception):
    """A command that was not answered as expected."""


class OldClient:
    """One connection to one server, chosen when it is made."""

    def __init__(self, servers: list[str], timeout: float = 5.0) -> None:
        """`timeout` in seconds, for connecting and for each answer."""
        self._servers = servers
        self._timeout = timeout
        self._socket: socket.socket | None = None
        self._stream: BinaryIO | None = None
        self.connects = 0
        self.gave_up = 0        # how often it left a server that was still there

    def put(self, queue: str, data: bytes, priority: int = 0) -> None:
        """Queue a job; fails unless the answer is 200 OK."""
        self._expect(f"PUT {queue} {priority} {len(data)}", data, "200 OK")

    def get(self, verb: str, queue: str, expire: int) -> tuple[int, bytes] | None:
        """Return the id and the data of a job, None when the queue is empty."""
        status = self._say(f"{verb} {queue} EXPIRE {expire} THEN LATER")
        if status == "404 Queue Empty":
            return None
        found = JOB.fullmatch(status)
        if not found:
            raise CommandError(status)
        return int(found[2]), self._read(int(found[4]))

    def done(self, job: int) -> bool:
        """Remove a running job; returns False when there is none with this id."""
        status = self._say(f"DONE {job}")
        if status == "404 Job Not Found":
            return False
        if status not in ("200 OK", "200 OK FINQ", "200 OK FINI", "200 OK FINQ FINI"):
            raise CommandError(status)
        return True

    def retry(self, call: Callable[[], T], until: float) -> T:
        """Repeat a call until it succeeds; raises its last exception when the time is up."""
        patient_until = time.monotonic() + REFUSED_S
        while True:
            try:
                return call()
            except (OSError, CommandError) as error:
                now = time.monotonic()
                if now > until:
                    raise
                if isinstance(error, OSError):
                    patient_until = now + REFUSED_S
                elif now > patient_until and self._socket:
                    self.close()
                    self.gave_up += 1
                time.sleep(PAUSE_S)

    def close(self) -> None:
        """End the connection."""
        if self._socket and self._stream:
            self._stream.close()
            self._socket.close()
        self._socket = self._stream = None

    def _connect(self) -> None:
        """Connect to all servers, ask each for its number, and keep the one with the smallest."""
        self.connects += 1
        chosen: tuple[int, socket.socket] | None = None
        for server in self._servers:
            host, _, port = server.rpartition(":")
            with suppress(OSError, CommandError):
                candidate = socket.create_connection((host, int(port)), self._timeout)
                candidate.sendall(b"INTERCONNECT\r\n")
                words = candidate.recv(100).decode().split()
                if words[:2] != ["200", "OK"] or (chosen and chosen[0] < int(words[2])):
                    candidate.close()
                    continue
                if chosen:
                    chosen[1].close()
                chosen = int(words[2]), candidate
        if chosen is None:
            raise CommandError("no server answers")
        self._socket = chosen[1]
        self._stream = chosen[1].makefile("rb")

    def _expect(self, line: str, data: bytes, expected: str) -> None:
        status = self._say(line, data)
        if status != expected:
            raise CommandError(status)

    def _say(self, line: str, data: bytes = b"") -> str:
        """Send a command; returns the status line."""
        if self._socket is None:
            self._connect()
        assert self._socket
        assert self._stream
        try:
            self._socket.sendall(line.encode() + b"\r\n" + data)
            status = self._stream.readline()
            if not status.endswith(b"\r\n"):
                raise ConnectionError("the connection ended")
        except OSError:
            self.close()
            raise
        return status[:-2].decode()

    def _read(self, length: int) -> bytes:
        assert self._stream
        try:
            data = self._stream.read(length)
            if len(data) < length:
                raise ConnectionError("the connection ended in the middle of a job")
        except OSError:
            self.close()
            raise
        return data
