"""The sums of all tubes at the program: fresh where counting is quick, shared by all clients where it takes long."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest

from sockpqd.beanstalk import calls
from sockpqd.beanstalk_proxy import shared_sums
from sockpqd.beanstalk_proxy.shared_sums import SharedSums


class SharedClient:
    """A client of two tubes, one without jobs; asking for the figures of one takes as long as the test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, took_s: float) -> None:
        self.ready = 1
        self.asked = 0
        self.now = 0.0
        self._took_s = took_s
        monkeypatch.setattr(shared_sums.time, "monotonic", lambda: self.now)

    async def queues(self) -> list[Any]:
        queue = SimpleNamespace(name="a", ready=self.ready, delayed=0, running=2, buried=3)
        return [queue, SimpleNamespace(name="b", ready=0, delayed=0, running=0, buried=0)]

    async def queue_stat(self, name: str) -> dict[str, int]:
        self.asked += 1
        await asyncio.sleep(0)
        self.now += self._took_s
        return {"urgent": 1}


def test_they_are_counted_for_each_who_asks_where_that_is_quick(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        cluster = SharedClient(monkeypatch, 0.001)
        sums = SharedSums(cluster)                  # type: ignore[arg-type]
        assert await sums.get() == (calls.Sums(1, 1, 2, 0, 3), frozenset({"a"}))
        cluster.ready = 5
        assert (await sums.get())[0].ready == 5
    asyncio.run(run())


def test_they_are_shared_where_counting_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    async def run() -> None:
        cluster = SharedClient(monkeypatch, 1.0)
        sums = SharedSums(cluster)                  # type: ignore[arg-type]
        await asyncio.gather(*[sums.get() for _ in range(100)])
        cluster.now += 8
        await sums.get()
        assert cluster.asked == 1
        cluster.now += 2
        await sums.get()
        assert cluster.asked == 2
    asyncio.run(run())
