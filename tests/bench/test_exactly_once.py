"""The clients of bench.exactly_once: none of them waits for the jobs of others while it has some to put."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest
import sockpq

from bench import exactly_once
from bench.exactly_once import QUEUE, SharedCount
from tests.client.real_server import RealServer
from tests.waiting import until

JOBS = 30
WAIT_S = 5.0


def consume_async(*arguments: object) -> None:
    """Run the asyncio client on a loop of its own."""
    asyncio.run(exactly_once.consume_async(*arguments))      # type: ignore[arg-type]


@pytest.fixture
def server() -> Iterator[RealServer]:
    with RealServer() as server:
        yield server


@pytest.mark.parametrize("prefetch", [1, 4])
@pytest.mark.parametrize("consume", [exactly_once.consume, consume_async], ids=["threads", "asyncio"])
def test_a_client_puts_its_numbers_although_another_takes_them(
    server: RealServer, monkeypatch: pytest.MonkeyPatch, consume: Callable[..., None], prefetch: int
) -> None:
    monkeypatch.setattr(exactly_once, "WAIT_S", WAIT_S)
    record = SharedCount(JOBS)
    numbers = iter(range(JOBS))
    with sockpq.Client(server.address) as greedy:
        def take_all() -> None:
            try:
                for job in greedy.consume(QUEUE, expire=60):
                    record.finished(job.data)
            except sockpq.SockpqError:        # closed below
                pass

        threads = [
            threading.Thread(target=take_all),
            threading.Thread(target=consume, args=([server.address], numbers, record, prefetch)),
        ]
        for thread in threads:
            thread.start()
        try:
            until(lambda: record.over, "all jobs done", 4 * WAIT_S)       # to wait WAIT_S for each takes longer
        finally:
            record.errors.append(TimeoutError())            # ends the client in any case
            threads[1].join()
            greedy.close()
            threads[0].join()
    assert record.errors[:-1] == []
    assert record.done == dict.fromkeys(range(JOBS), 1)
    assert record.longest_pause_s > 0
