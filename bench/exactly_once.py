"""Exactly-once processing across failovers: clients put and process numbered jobs while leaders are killed.

    python -m bench.exactly_once [--jobs 100000] [--clients 50] [--every 5] [--prefetch N]

With `--prefetch` workers use consume(), where the end of a job and the request for the next travel in one packet. They
put as many numbers at once as they may take at once, otherwise there would be little to take.

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
WAIT_S = 1.0            # how long consume() waits for a job at the end, when others may still put some
TELL_S = 5.0


class SharedCount:
    """The sums of all clients; shared by the threads."""

    def __init__(self, jobs: int) -> None:
        self.jobs = jobs
        self.done: Counter[int] = Counter()
        self.errors: list[BaseException] = []
        self.longest_pause_s = 0.0      # between two jobs done by anyone
        self._last = time.monotonic()
        self._lock = threading.Lock()

    @property
    def over(self) -> bool:
        """True if all jobs are done, or an error has occurred."""
        return len(self.done) >= self.jobs or bool(self.errors)

    def finished(self, data: bytes) -> None:
        """Count a job that is done, or whose loop will mark it as done."""
        with self._lock:
            self.done[int(data)] += 1
            now = time.monotonic()
            self.longest_pause_s = max(self.longest_pause_s, now - self._last)
            self._last = now


def work(servers: list[str], numbers: Iterator[int], record: SharedCount) -> None:
    """Run a blocking client, which puts one job and processes one in turn until all are done."""
    try:
        with sockpq.Client(servers) as client:
            while not record.over:
                number = next(numbers, None)
                if number is not None:
                    client.put(QUEUE, b"%d" % number)
                job = client.get(QUEUE, expire=EXPIRE_S)
                if job is None:
                    time.sleep(IDLE_S)
                    continue
                job.done()
                record.finished(job.data)
    except Exception as error:
        record.errors.append(error)


async def work_async(servers: list[str], numbers: Iterator[int], record: SharedCount) -> None:
    """Work off the jobs with an asyncio client."""
    try:
        async with sockpq.aio.Client(servers) as client:
            while not record.over:
                number = next(numbers, None)
                if number is not None:
                    await client.put(QUEUE, b"%d" % number)
                job = await client.get(QUEUE, expire=EXPIRE_S)
                if job is None:
                    await asyncio.sleep(IDLE_S)
                    continue
                await job.done()
                record.finished(job.data)
    except Exception as error:
        record.errors.append(error)


def consume(servers: list[str], numbers: Iterator[int], record: SharedCount, prefetch: int) -> None:
    """Consume with a blocking client, and put as many jobs as it gets."""
    try:
        with sockpq.Client(servers) as client:
            while not record.over:
                wait = WAIT_S
                if portion := bodies(numbers, prefetch):
                    client.put_many(QUEUE, portion)
                    wait = IDLE_S       # a client with numbers must not wait for others' numbers
                for count, job in enumerate(client.consume(QUEUE, expire=EXPIRE_S, wait=wait, prefetch=prefetch), 1):
                    record.finished(job.data)
                    if count % prefetch == 0 and (portion := bodies(numbers, prefetch)):
                        client.put_many(QUEUE, portion)
    except Exception as error:
        record.errors.append(error)


async def consume_async(servers: list[str], numbers: Iterator[int], record: SharedCount, prefetch: int) -> None:
    """Consume the jobs with an asyncio client."""
    try:
        async with sockpq.aio.Client(servers) as client:
            while not record.over:
                wait = WAIT_S
                if portion := bodies(numbers, prefetch):
                    await client.put_many(QUEUE, portion)
                    wait = IDLE_S
                count = 0
                async for job in client.consume(QUEUE, expire=EXPIRE_S, wait=wait, prefetch=prefetch):
                    record.finished(job.data)
                    count += 1
                    if count % prefetch == 0 and (portion := bodies(numbers, prefetch)):
                        await client.put_many(QUEUE, portion)
    except Exception as error:
        record.errors.append(error)


def bodies(numbers: Iterator[int], count: int) -> list[bytes]:
    """The bodies of the next jobs to put; none at the end."""
    return [b"%d" % number for number in islice(numbers, count)]


async def all_async(servers: list[str], shares: list[Iterator[int]], record: SharedCount, prefetch: int | None) -> None:
    """Run all asyncio clients on one loop."""
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
    """Kill the leader at this interval, in seconds, until all is done; returns how often."""
    kills, reported_at = 0, time.monotonic()
    next_kill = reported_at + every_s
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
        if now - reported_at > TELL_S:
            reported_at = now
            console.print(f"{len(record.done)} of {record.jobs} done, {kills} leaders killed")
    return kills


@click.command()
@click.option("--jobs", default=100_000, help="How many numbers.")
@click.option("--clients", default=50, help="How many clients.")
@click.option("--every", "every_s", default=5.0, help="Seconds between two kills.")
@click.option("--prefetch", type=click.IntRange(1), help="Use consume(), and take this many jobs at once.")
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
    console.print(f"longest time without a job done: {record.longest_pause_s:.2f} s")
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
