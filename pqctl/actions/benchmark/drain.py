"""Drains a queue that has no other users, as the benchmark does."""

from __future__ import annotations

import time

from sockpq import Client, SockpqError

ATTEMPTS = 5
PAUSE_S = 0.5
BATCH = 1000
LEASE_S = 30


def drain(client: Client, queue: str) -> int | None:
    """Finish all jobs of `queue`, including running ones, in several attempts; returns how many are left.

    None if they can no longer be counted.
    """
    left: int | None = None
    for attempt in range(ATTEMPTS):
        if attempt:
            time.sleep(PAUSE_S)
        try:
            while jobs := client.get_many(BATCH, queue, expire=LEASE_S):
                client.done_many(jobs)
            totals = client.total(queue)
            if totals.running:
                client.done_many([job.id for job in client.running() if job.queue == queue])
                totals = client.total(queue)
        except SockpqError:
            left = None
            continue
        left = totals.jobs + totals.running
        if not left:
            break
    return left
