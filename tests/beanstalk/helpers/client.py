"""A client of beanstalkd for tests, over a blocking socket."""

from __future__ import annotations

import re
import socket
from types import TracebackType
from typing import Self

PATIENCE_S = 60.0           # no test depends on it


class BeanstalkClient:
    """One connection, which uses and watches the given tubes."""

    def __init__(self, address: str, *tubes: str) -> None:
        host, _, port = address.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), PATIENCE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._file = self.socket.makefile("rb")
        try:
            for tube in tubes:
                self(f"use {tube}")
                self(f"watch {tube}")
            if tubes:
                self("ignore default")
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None,
    ) -> None:
        self.close()

    def send(self, text: str) -> None:
        """Send a line, to which CR LF is added."""
        self.socket.sendall(text.encode() + b"\r\n")

    def line(self) -> str:
        """Return the next line; raises EOFError when the connection is closed."""
        line = self._file.readline()
        if not line.endswith(b"\r\n"):
            raise EOFError(line)
        return line[:-2].decode()

    def _bytes(self, length: int) -> bytes:
        """Return this many bytes, without the end of line after them; raises EOFError as `line`."""
        data = self._file.read(length + 2)
        if len(data) < length + 2:
            raise EOFError(data)
        return data[:-2]

    def __call__(self, command: str) -> str:
        """Send a command; returns the line of its answer."""
        self.send(command)
        return self.line()

    def put(self, body: str = "x", pri: int = 0, delay: int = 0, ttr: int = 60) -> int:
        """Put a job; returns its id."""
        answer = self(f"put {pri} {delay} {ttr} {len(body)}\r\n{body}")
        assert re.fullmatch(r"INSERTED \d+", answer), answer
        return int(answer.split()[1])

    def job(self, command: str) -> tuple[int, str]:
        """Return id and body of the job that answers the command."""
        return self.rest(self(command))

    def rest(self, line: str) -> tuple[int, str]:
        """Return id and body of an answer whose line was read."""
        assert re.fullmatch(r"(RESERVED|FOUND) \d+ \d+", line), line
        _, number, length = line.split()
        return int(number), self._bytes(int(length)).decode()

    def take(self, seconds: int = 0) -> int:
        """Reserve a job; returns its id."""
        return self.job(f"reserve-with-timeout {seconds}")[0]

    def stats(self, command: str) -> dict[str, str]:
        """Return the figures of a stats command."""
        return self.figures(self(command))

    def figures(self, line: str) -> dict[str, str]:
        """Return the figures of an answer whose line was read."""
        assert line.startswith("OK "), line
        body = self._bytes(int(line.split()[1])).decode()
        return {key: value.strip('"') for key, value in (row.split(": ", 1) for row in body.splitlines()[1:] if row)}

    def names(self, command: str) -> list[str]:
        """Return the names in a list."""
        answer = self(command)
        assert answer.startswith("OK "), answer
        body = self._bytes(int(answer.split()[1])).decode()
        return [row.removeprefix("- ") for row in body.splitlines()[1:] if row]

    def close(self) -> None:
        """End the connection."""
        self._file.close()
        self.socket.close()
