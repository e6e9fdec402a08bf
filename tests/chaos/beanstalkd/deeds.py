"""The commands of beanstalkd's clients and their outcomes, on one clock: the evidence that judge.py judges.

One deed is one command on one connection. Every body is put only once, so a body identifies its job for ever.
"""

from __future__ import annotations

import threading
from pathlib import Path

import msgspec
from msgspec import Struct


class Deed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A command and its answer.

    `answer`: its first word, None if the connection ended before it. `job`: the id named by the command or by the
    answer. `body`: of the job that was put, or reserved. `priority`, `delay_s`, `ttr_s`: of `put`, `release`, `bury`.
    """

    client: str
    via: str                        # a node, or the program
    connection: int
    verb: str
    start_ns: int                   # before the first byte was sent
    end_ns: int                     # when the answer was read, or when the client saw that none will come
    answer: str | None
    tubes: tuple[str, ...] = ()     # that it puts into, or reserves from
    job: int | None = None
    body: str | None = None
    priority: int = 0
    delay_s: int = 0
    ttr_s: int = 0


class Deeds:
    """Collects deeds from many threads. `ended`: the earliest time at which each closed connection can have ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._connections = 0
        self.deeds: list[Deed] = []
        self.ended: dict[int, int] = {}

    def connection(self) -> int:
        """Return the number of a new connection."""
        with self._lock:
            self._connections += 1
            return self._connections

    def add(self, deed: Deed) -> None:
        """Append a deed."""
        with self._lock:
            self.deeds.append(deed)

    def end(self, connection: int, at_ns: int) -> None:
        """Record that the connection has ended."""
        with self._lock:
            self.ended[connection] = at_ns

    def save(self, path: Path) -> None:
        """Write each deed as a line of JSON, then a line with the ends of the connections."""
        with path.open("wb") as file:
            for deed in self.deeds:
                file.write(msgspec.json.encode(deed) + b"\n")
            file.write(msgspec.json.encode(self.ended) + b"\n")
