"""Workers of Dramatiq, within this process."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from dramatiq import Broker, Worker
from sockpq import Client

PATIENCE_MS = 120_000


@contextmanager
def working(broker: Broker, threads: int = 2, **options: Any) -> Iterator[Worker]:
    """Run a worker during the block; then it finishes what it works on."""
    worker = Worker(broker, worker_timeout=50, worker_threads=threads, **options)
    worker.start()
    try:
        yield worker
    finally:
        worker.stop()


def work_off(broker: Broker, *queues: str, threads: int = 2) -> None:
    """Let a worker finish all messages of these queues."""
    with working(broker, threads):
        for queue in queues or ("default",):
            broker.join(queue, timeout=PATIENCE_MS)


def filled(client: Client) -> list[str]:
    """The queues that have jobs; one for which a worker waits is listed without any."""
    return sorted(queue.name for queue in client.queues() if any((
        queue.ready, queue.delayed, queue.running, queue.dead, queue.buried)))
