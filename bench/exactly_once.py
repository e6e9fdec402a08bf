"""Exactly-once processing across failovers: clients put and process numbered jobs while leaders are killed.

    python -m bench.exactly_once [--jobs 100000] [--clients 50] [--every 5] [--prefetch N]

With `--prefetch` workers use consume(), where the end of a job and the request for the next travel in one packet.

Half of the clients are blocking, each in its own thread; the others are asyncio clients on one loop. Every number must
be done exactly once, and no call may raise; otherwise the exit code is 1.
"""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import islice

import click
import sockpq
import sockpq.aio
from rich.console import Console

from bench.load_generator.console import make_console
from devcluster.cluster import LocalCluster

QUEUE = "numbers"
EXPIRE_S = 60.0
IDLE_S = 0.02           # pause when there is nothing to get
WAIT_S = 1.0            # how long consume() waits for a job before all is taken to be over
TELL_S = 5.0


class SharedCount:
    """What all clients have done together; shared by the threads."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.done: Counter[int] = Counter()
        self.errors: list[BaseException] = []
        self.longest_s = 0.0
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """Are all jobs done, or has an error occurred?"""
        return len(self.done) >= self.jobs or bool(self.errors)

    def took(self, begun: float) -> None:
        """Note the duration of a call that began at this time and has returned."""
        self.longest_s = max(self.longest_s, time.monotonic() - begun)

    def finished(self, data: bytes) -> None:
        """Count a job whose DONE was acknowledged."""
        with self._lock:
            self.done[int(data)] += 1


def work(servers: list[str], numbers: Iterator[int], record: SharedCount) -> None:
    """Run a blocking client, which puts one job and processes one in turn until all are done."""
    try:
        with sockpq.Client(servers) as client:
            while not record.over:
                number = next(numbers, None)
                if number is not None:
                    begun = time.monotonic()
                    client.put(QUEUE, b"%d" % number)
                    record.took(begun)
                begun = time.monotonic()
                job = client.get(QUEUE, expire=EXPIRE_S)
                record.took(begun)
                if job is None:
                    time.sleep(IDLE_S)
                    continue
                begun = time.monotonic()
                job.done()
                record.took(begun)
                record.finished(job.data)
    except Exception as error:
        record.errors.append(error)


async def work_async(servers: list[str], numbers: Iterator[int], record: SharedCount) -> None:
    """The same with an asyncio client."""
    try:
        async with sockpq.aio.Client(servers) as client:
            while not record.over:
                number = next(numbers, None)
                if number is not None:
                    begun = time.monotonic()
                    await client.put(QUEUE, b"%d" % number)
                    record.took(begun)
                begun = time.monotonic()
                job = await client.get(QUEUE, expire=EXPIRE_S)
                record.took(begun)
                if job is None:
                    await asyncio.sleep(IDLE_S)
                    continue
                begun = time.monotonic()
                await job.done()
                record.took(begun)
                record.finished(job.data)
    except Exception as error:
        record.errors.append(error)


def consume(servers: list[str], numbers: Iterator[int], record: SharedCount, prefetch: int) -> None:
    """A blocking client that consumes, and puts one for each job it gets."""
    try:
        with sockpq.Client(servers) as client:
            while not record.over:
                for number in islice(numbers, 1):
                    client.put(QUEUE, b"%d" % number)
                for job in client.consume(QUEUE, expire=EXPIRE_S, wait=WAIT_S, prefetch=prefetch):
                    record.finished(job.data)
                    for number in islice(numbers, 1):
                        client.put(QUEUE, b"%d" % number)
    except Exception as error:
        record.errors.append(error)


async def consume_async(servers: list[str], numbers: Iterator[int], record: SharedCount, prefetch: int) -> None:
    """The same with an asyncio client."""
    try:
        async with sockpq.aio.Client(servers) as client:
            while not record.over:
                for number in islice(numbers, 1):
                    await client.put(QUEUE, b"%d" % number)
                async for job in client.consume(QUEUE, expire=EXPIRE_S, wait=WAIT_S, prefetch=prefetch):
                    record.finished(job.data)
                    for number in islice(numbers, 1):
                        await client.put(QUEUE, b"%d" % number)
    except Exception as error:
        record.errors.append(error)


async def all_async(servers: list[str], shares: list[Iterator[int]], record: SharedCount, prefetch: int | None) -> None:
    """All asyncio clients on one loop."""
    await asyncio.gather(*(
        consume_async(servers, share, record, prefetch) if prefetch else work_async(servers, share, record)
        for share in shares
    ))


def start(servers: list[str], clients: int, record: SharedCount, prefetch: int | None) -> list[threading.Thread]:
    """Start all clients; each has its share of the numbers."""
    shares = [iter(range(first, record.jobs, clients)) for first in range(clients)]
    blocking, looped = shares[: clients // 2], shares[clients // 2 :]
    threads = [
        threading.Thread(target=consume, args=(servers, share, record, prefetch)) if prefetch else
        threading.Thread(target=work, args=(servers, share, record))
        for share in blocking
    ]
    threads.append(threading.Thread(target=lambda: asyncio.run(all_async(servers, looped, record, prefetch))))
    for thread in threads:
        thread.start()
    return threads


def kill_leaders(cluster: LocalCluster, every_s: float, record: SharedCount, console: Console) -> int:
    """Kill the leader every so many seconds until all is done; returns how often."""
    kills, told = 0, time.monotonic()
    next_kill = told + every_s
    while not record.over:
        time.sleep(0.05)
        now = time.monotonic()
        if now >= next_kill:
            leader = cluster.wait_for_leader()
            cluster.kill(leader)
            kills += 1
            time.sleep(1.0)
            cluster.restart(leader)
            next_kill = now + every_s
        if now - told > TELL_S:
            told = now
            console.print(f"{len(record.done)} of {record.jobs} done, {kills} leaders killed")
    return kills


@click.command()
@click.option("--jobs", default=100_000, help="How many numbers.")
@click.option("--clients", default=50, help="How many clients.")
@click.option("--every", "every_s", default=5.0, help="Seconds between two kills.")
@click.option("--prefetch", type=click.IntRange(1), help="Use consume(), and take so many jobs at once.")
def main(jobs: int, clients: int, every_s: float, prefetch: int | None) -> None:
    """Kill leaders while clients work."""
    console = make_console()
    with LocalCluster(3) as cluster:
        record = SharedCount(jobs)
        begun = time.monotonic()
        threads = start(cluster.servers, clients, record, prefetch)
        kills = kill_leaders(cluster, every_s, record, console)
        for thread in threads:
            thread.join()
        seconds = time.monotonic() - begun
        left = 0 if record.errors else _left(cluster)
    twice = sum(1 for count in record.done.values() if count > 1)
    console.print(f"{len(record.done)} of {jobs} jobs done in {seconds:.0f} s, {kills} leaders killed")
    console.print(f"done twice: {twice}, left in the queue: {left}, errors: {len(record.errors)}")
    console.print(f"longest call: {record.longest_s:.2f} s")
    for error in record.errors[:5]:
        console.print(f"{type(error).__name__}: {error}")
    sys.exit(1 if twice or left or record.errors or len(record.done) < jobs else 0)


def _left(cluster: LocalCluster) -> int:
    """The number of jobs still waiting or running."""
    cluster.wait_for_leader()
    with sockpq.Client(cluster.servers) as client:
        total = client.total(QUEUE)
        return total.jobs + total.running


if __name__ == "__main__":
    main()
