"""A connection of the load generator: raw protocol bytes, without the cost of the client library."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from time import perf_counter_ns
from typing import NamedTuple, cast

# What follows the first line of an answer: nothing; the data of a job, if there is one; a list of lines.
LINE, JOB, LIST = range(3)

GOOD = b"200 OK"
LOST = b""      # the line of an answer that never comes, because the connection is closed


class Answer(NamedTuple):
    """The first line without its end (or LOST), what follows it, and the times by perf_counter_ns."""

    line: bytes
    data: bytes
    asked_ns: int
    now_ns: int

    @property
    def good(self) -> bool:
        return self.line.startswith(GOOD)


OnAnswer = Callable[[Answer], None]


class Wire(asyncio.Protocol):
    """Sends commands, and passes each answer to its callback."""

    def __init__(self) -> None:
        self._asked: deque[tuple[int, int, OnAnswer]] = deque()     # kind of answer, time, callback; oldest first
        self._received = b""
        self._to_send: list[bytes] = []
        self._transport: asyncio.Transport | None = None

    def ask(self, command: bytes, kind: int, on_answer: OnAnswer) -> None:
        """Queue a command for the next `flush`, which follows by itself if this is called from a callback."""
        self._to_send.append(command)
        self._asked.append((kind, perf_counter_ns(), on_answer))

    def flush(self) -> None:
        if self._to_send and self._transport:
            self._transport.write(b"".join(self._to_send))
        self._to_send.clear()

    def close(self) -> None:
        """Close the connection without calling the callbacks of unanswered commands."""
        self._asked.clear()
        if self._transport:
            self._transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)       # uvloop's are no subclass

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio: answer all outstanding commands with LOST."""
        self._transport = None
        while self._asked:
            _, asked_ns, on_answer = self._asked.popleft()
            on_answer(Answer(LOST, b"", asked_ns, perf_counter_ns()))

    def data_received(self, data: bytes) -> None:
        """asyncio: parse answers and call their callbacks."""
        self._received = self._received + data if self._received else data
        now = perf_counter_ns()
        at = 0
        while self._asked:
            end = self._take(at, now)
            if end is None:
                break
            at = end
        self._received = self._received[at:]
        self.flush()

    def _take(self, at: int, now: int) -> int | None:
        """Parse the answer at `at`; returns the start of the next one, None if this one is incomplete."""
        end = self._received.find(b"\r\n", at)
        if end < 0:
            return None
        line = self._received[at:end]
        kind, asked_ns, on_answer = self._asked[0]
        begin = after = end + 2
        if kind == JOB and line.startswith(b"200 OK "):
            after += int(line.split(b" ")[5])
            if len(self._received) < after:
                return None
        elif kind == LIST and line.startswith(b"200 OK "):
            for _ in range(int(line.split(b" ")[2])):
                end = self._received.find(b"\r\n", after)
                if end < 0:
                    return None
                after = end + 2
        self._asked.popleft()
        on_answer(Answer(line, self._received[begin:after], asked_ns, now))
        return after


async def open_wires(server: str, count: int) -> list[Wire]:
    """Open `count` connections to a server ("host:port"). Raises OSError."""
    loop = asyncio.get_running_loop()
    host, _, port = server.rpartition(":")
    return [(await loop.create_connection(Wire, host.strip("[]"), int(port)))[1] for _ in range(count)]


@asynccontextmanager
async def wires_to(server: str, count: int = 1) -> AsyncIterator[list[Wire]]:
    """`count` connections to a server, closed at the end. Raises OSError."""
    wires = await open_wires(server, count)
    try:
        yield wires
    finally:
        for wire in wires:
            wire.close()


async def ask(wire: Wire, command: bytes, kind: int = LINE) -> Answer:
    """Send a command and wait for the answer. Raises ConnectionError if the connection is closed before that."""
    answered: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()

    def on_answer(answer: Answer) -> None:
        if not answered.done():
            answered.set_result(answer)

    wire.ask(command, kind, on_answer)
    wire.flush()
    answer = await answered
    if answer.line == LOST:
        raise ConnectionError(f"connection lost before the answer to {command[:60]!r}")
    return answer
