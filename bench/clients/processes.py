"""Processes that put or process tasks at the same time, and the time and CPU that they use."""

from __future__ import annotations

import asyncio
import multiprocessing
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from bench.clients.drivers import DRIVERS, IDLE_S, LEASE_S, QUEUE

ASYNCIO_TASKS = 100


class Took(NamedTuple):
    """The sums of all processes."""

    tasks: int
    wall_s: float
    cpu_s: float        # of the processes that use the library, not of the servers

    @property
    def rate(self) -> float:
        return self.tasks / self.wall_s if self.wall_s else 0.0

    @property
    def cpu_us(self) -> float:
        """Microseconds of CPU for each task."""
        return 1e6 * self.cpu_s / self.tasks if self.tasks else 0.0


class One(NamedTuple):
    """The work of one process; times are on the machine's monotonic clock."""

    tasks: int
    begun: float
    ended: float
    cpu_s: float


def put(system: str, address: str, prefetch: int, tasks: int, size: int, ready: Any) -> One:
    """Put this many tasks of `size` bytes."""
    driver = DRIVERS[system](address, prefetch)
    body = b"x" * size
    ready.wait()
    begun, cpu = time.monotonic(), time.process_time()
    for _ in range(tasks):
        driver.put(body)
    took = One(tasks, begun, time.monotonic(), time.process_time() - cpu)
    driver.close()
    return took


def put_in_tasks(system: str, address: str, prefetch: int, tasks: int, size: int, ready: Any) -> One:
    """Put the jobs by a hundred tasks of one asyncio client of sockpq."""
    import sockpq.aio

    left = iter(range(tasks))       # which all tasks share
    body = b"x" * size

    async def producer(client: sockpq.aio.Client) -> None:
        for _ in left:
            await client.put(QUEUE, body)

    async def main() -> One:
        async with sockpq.aio.Client(address) as client:
            ready.wait()
            begun, cpu = time.monotonic(), time.process_time()
            async with asyncio.TaskGroup() as group:
                for _ in range(ASYNCIO_TASKS):
                    group.create_task(producer(client))
            return One(tasks, begun, time.monotonic(), time.process_time() - cpu)

    return asyncio.run(main())


def work(system: str, address: str, prefetch: int, tasks: int, size: int, ready: Any) -> One:
    """Process all tasks that there are."""
    driver = DRIVERS[system](address, prefetch)
    ready.wait()
    begun, cpu = time.monotonic(), time.process_time()
    count, ended, used = 0, begun, 0.0
    for _ in driver.work():
        count += 1
        ended, used = time.monotonic(), time.process_time() - cpu
    driver.close()
    return One(count, begun, ended, used)


def work_in_tasks(system: str, address: str, prefetch: int, tasks: int, size: int, ready: Any) -> One:
    """Process the jobs by a hundred tasks of one asyncio client of sockpq."""
    import sockpq.aio

    count, ended, used = 0, 0.0, 0.0

    async def worker(client: sockpq.aio.Client, begun_cpu: float) -> None:
        nonlocal count, ended, used
        async for _ in client.consume(QUEUE, expire=LEASE_S, wait=IDLE_S, prefetch=prefetch):
            count += 1
            ended, used = time.monotonic(), time.process_time() - begun_cpu

    async def main() -> One:
        async with sockpq.aio.Client(address) as client:
            ready.wait()
            begun, cpu = time.monotonic(), time.process_time()
            async with asyncio.TaskGroup() as group:
                for _ in range(ASYNCIO_TASKS):
                    group.create_task(worker(client, cpu))
            return One(count, begun, ended or begun, used)

    return asyncio.run(main())


def together(
    action: Callable[..., One], system: str, address: str, prefetch: int, processes: int, tasks: int, size: int
) -> Took:
    """Run `action` in this many processes at once; `tasks` are shared among them."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        ready = manager.Barrier(processes)
        shares = [tasks // processes + (number < tasks % processes) for number in range(processes)]
        with context.Pool(processes) as pool:
            ended = [
                pool.apply_async(action, (system, address, prefetch, share, size, ready)) for share in shares
            ]
            ones = [one.get() for one in ended]
    wall = max(one.ended for one in ones) - min(one.begun for one in ones)
    return Took(sum(one.tasks for one in ones), wall, sum(one.cpu_s for one in ones))
