"""A real node for this folder, with empty queues, and workers within this process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from sockpq.aio import Client
from sockpq.testing import Server
from sockpq_taskiq import SockpqBroker
from taskiq.receiver import Receiver

from tests.emptied_cluster import EmptiedCluster
from tests.waiting import PATIENCE_S, POLL_S


@pytest.fixture(scope="package")
def own_server() -> Iterator[Server | EmptiedCluster]:
    """A real node for all files of this folder; three nodes with `make test-frameworks`."""
    with EmptiedCluster() if os.environ.get("FRAMEWORKS") else Server() as server:
        yield server


@pytest.fixture
def address(own_server: Server) -> str:
    """The address of a node with empty queues."""
    own_server.empty()
    return own_server.address


@asynccontextmanager
async def started(broker: SockpqBroker) -> AsyncIterator[SockpqBroker]:
    """Start a broker, and shut it down at the end of the block."""
    await broker.startup()
    try:
        yield broker
    finally:
        await broker.shutdown()


@asynccontextmanager
async def receiving(broker: SockpqBroker, **options: Any) -> AsyncIterator[Receiver]:
    """Run a worker, as the program `taskiq` does."""
    options.setdefault("max_async_tasks", 10)
    receiver = Receiver(broker, run_startup=False, **options)
    finish = asyncio.Event()
    task = asyncio.create_task(receiver.listen(finish))
    try:
        yield receiver
    finally:
        finish.set()
        await asyncio.wait_for(task, PATIENCE_S)


async def until(condition: Callable[[], object]) -> None:
    """Wait until the condition holds, for PATIENCE_S seconds at most."""
    async with asyncio.timeout(PATIENCE_S):
        while not condition():
            await asyncio.sleep(POLL_S)


async def until_true(condition: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Wait for a condition that is a coroutine."""
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():
            await asyncio.sleep(POLL_S)


async def filled(client: Client) -> list[str]:
    """The queues that have jobs; one for which a worker waits is listed without any."""
    return sorted(queue.name for queue in await client.queues() if any((
        queue.ready, queue.delayed, queue.running, queue.dead, queue.buried)))
