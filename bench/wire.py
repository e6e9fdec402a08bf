"""One connection of the load generator: raw protocol bytes, so that the client library costs nothing here."""

from __future__ import annotations

import asyncio
from array import array
from collections import Counter, deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import cast

Step = str      # "PUT", "GET" or "DONE"

CYCLES: dict[str, tuple[Step, ...]] = {
    "put": ("PUT",),
    "getdone": ("GET", "DONE"),
    "mixed": ("PUT", "GET", "DONE"),
}


class Figures:
    """What all connections of a run have measured."""

    def __init__(self) -> None:
        self.latencies_us: dict[Step, array[int]] = {step: array("I") for step in ("PUT", "GET", "DONE")}
        self.problems: Counter[str] = Counter()     # every answer that is not the one hoped for
        self.cycles = 0                             # completed ones
        self.last_ns = 0                            # when the last answer came

    @property
    def commands(self) -> int:
        """Answered commands."""
        return sum(map(len, self.latencies_us.values()))


class LoadConnection(asyncio.Protocol):
    """Runs `pipeline` cycles side by side: each sends its next command when its last one is answered."""

    def __init__(
        self,
        cycle: tuple[Step, ...],
        pipeline: int,
        put: bytes,
        get: bytes,
        figures: Figures,
        on_end: Callable[[], None],
    ) -> None:
        """`put` and `get` are whole commands; `on_end` is called once when the connection is closed."""
        self._cycle = cycle
        self._pipeline = pipeline
        self._commands = {"PUT": put, "GET": get}
        self._figures = figures
        self._on_end = on_end
        self._expected: deque[tuple[int, int]] = deque()    # place in the cycle and when it was sent, oldest first
        self._received = b""
        self._to_send: list[bytes] = []
        self._transport: asyncio.Transport | None = None
        self._ending = False

    def start(self) -> None:
        """Begin; the connection must be open."""
        for _ in range(self._pipeline):
            self._send(0, b"")
        self._flush()

    def end(self) -> None:
        """Send no more; wait for the answers that are owed."""
        self._ending = True
        if not self._expected:
            self._close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio: connected."""
        self._transport = cast(asyncio.Transport, transport)       # uvloop's are no subclass

    def connection_lost(self, error: Exception | None) -> None:
        """asyncio: closed by either side."""
        if self._expected:
            self._figures.problems["connection lost"] += len(self._expected)
            self._expected.clear()
        self._on_end()

    def data_received(self, data: bytes) -> None:
        """asyncio: bytes have come."""
        self._received = self._received + data if self._received else data
        now = perf_counter_ns()
        at = 0
        while self._expected:
            end = self._answer(at, now)
            if end is None:
                break
            at = end
        self._received = self._received[at:]
        self._figures.last_ns = now
        if not self._expected:
            self._close()
        else:
            self._flush()

    def _answer(self, at: int, now: int) -> int | None:
        """Take the answer that begins at `at`; returns where the next one begins, None when it is incomplete."""
        end = self._received.find(b"\r\n", at)
        if end < 0:
            return None
        line = self._received[at:end]
        after = end + 2
        place, sent = self._expected[0]
        step = self._cycle[place]
        job_id = b""
        if step == "GET" and line.startswith(b"200 OK "):
            fields = line.split(b" ")
            job_id = fields[3]
            after += int(fields[5])
            if len(self._received) < after:
                return None
        self._expected.popleft()
        self._note(step, line, (now - sent) // 1000)
        self._next(place, job_id)
        return after

    def _note(self, step: Step, line: bytes, latency_us: int) -> None:
        if line.startswith(b"200 OK"):
            self._figures.latencies_us[step].append(latency_us)
        else:
            self._figures.problems[f"{step}: {line.decode('ascii', 'replace')}"] += 1

    def _next(self, place: int, job_id: bytes) -> None:
        """The cycle goes on; one that finds no job begins anew, or ends when it puts none itself."""
        step = self._cycle[place]
        drained = step == "GET" and not job_id
        if place + 1 == len(self._cycle):
            self._figures.cycles += 1
        if self._ending or (drained and self._cycle[0] == "GET"):
            if step == "GET" and job_id:
                self._send(place + 1, job_id)       # a job taken is also done, or it would stay behind
            return
        self._send(0 if drained or place + 1 == len(self._cycle) else place + 1, job_id)

    def _send(self, place: int, job_id: bytes) -> None:
        step = self._cycle[place]
        self._to_send.append(b"DONE %b\r\n" % job_id if step == "DONE" else self._commands[step])
        self._expected.append((place, perf_counter_ns()))

    def _flush(self) -> None:
        if self._to_send and self._transport:
            self._transport.write(b"".join(self._to_send))
            self._to_send.clear()

    def _close(self) -> None:
        if self._transport:
            self._transport.close()
