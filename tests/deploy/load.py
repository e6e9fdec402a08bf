"""Clients at work while hosts are looked after: jobs put, taken and finished at a steady rate, all calls remembered."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from itertools import pairwise
from types import TracebackType
from typing import Any, Self

from sockpq import aio

QUEUE = "load"
WORKERS = 40
LEASE_S = 600
CALL_S = 30.0       # a call that takes longer has failed


class Load:
    """Puts jobs at a fixed rate, in a thread of its own, until the block is left. `options` are the client's."""

    def __init__(self, servers: str, jobs_per_s: float, **options: Any) -> None:
        self._servers, self._options = servers, options
        self._pause_s = WORKERS / jobs_per_s
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.put: list[bytes] = []
        self.finished: Counter[bytes] = Counter()
        self.moments: list[float] = []          # when a call was answered
        self.errors: list[BaseException] = []

    def __enter__(self) -> Self:
        self.begun = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()
        self.ended = time.monotonic()

    @property
    def jobs_per_s(self) -> float:
        """Return the rate of finished jobs."""
        return self.finished.total() / (self.ended - self.begun)

    def pause_s(self, begin: float | None = None, end: float | None = None) -> float:
        """The longest time in which no call was answered, between two moments of time.monotonic()."""
        begin, end = begin or self.begun, end or self.ended
        moments = [begin, *sorted(moment for moment in self.moments if begin < moment < end), end]
        return max(later - earlier for earlier, later in pairwise(moments))

    def check(self) -> None:
        """No call failed, every job was handed out once and finished."""
        assert not self.errors, self.errors[:3]
        assert self.finished == Counter(self.put)

    async def _run(self) -> None:
        async with aio.Client(self._servers, timeout=CALL_S, **self._options) as client:
            await asyncio.gather(*(self._work(client, number) for number in range(WORKERS)))

    async def _work(self, client: aio.Client, number: int) -> None:
        due = time.monotonic() + self._pause_s * number / WORKERS
        turn = 0
        while not self._stopping.is_set() and not self.errors:
            await asyncio.sleep(max(due - time.monotonic(), 0))
            due = max(due + self._pause_s, time.monotonic() - self._pause_s)    # what was missed is not made up for
            turn += 1
            try:
                await self._cycle(client, f"{number}-{turn}".encode())
            except Exception as error:      # whatever it is: a call failed
                self.errors.append(error)

    async def _cycle(self, client: aio.Client, body: bytes) -> None:
        await client.put(QUEUE, body)
        self.put.append(body)
        self._answered()
        job = await client.get(QUEUE, expire=LEASE_S)
        assert job is not None, "the queue was empty although each worker puts before it takes"
        self._answered()
        await job.done()
        self.finished[job.data] += 1
        self._answered()

    def _answered(self) -> None:
        self.moments.append(time.monotonic())
