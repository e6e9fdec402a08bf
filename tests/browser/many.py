"""A cluster with very much in it: 10,000 queues with jobs, and a million records of ended ones.

In `make test` there are fewer records, as a million take a minute or two.
"""

from __future__ import annotations

import os

from sockpq import Client

QUEUES, RECORDS = 10_000, 1_000_000
RECORDS_OF_TESTS = int(os.environ.get("SOCKPQD_RECORDS", "20000"))
RECORD_QUEUES = 10              # that have the records
BATCH = 1000


def name(number: int) -> str:
    """Return the name of a queue."""
    return f"shop{number % 100:02}.queue{number:05}"


def records_queue(number: int) -> str:
    """Return the name of a queue with records."""
    return f"ended{number}"


def fill(client: Client, queues: int = QUEUES, records: int = RECORDS) -> None:
    """Put a job into each of the queues, and leave the records of jobs that were done in others."""
    for first in range(0, queues, 100):
        with client.transaction() as together:
            for number in range(first, min(queues, first + 100)):
                together.put(name(number), b"a body of some length", priority=number % 3)
    for number in range(RECORD_QUEUES):
        client.queue_create(records_queue(number), retain=86_400, retain_max=records // RECORD_QUEUES, numbered=True)
        for _ in range(0, records // RECORD_QUEUES, BATCH):
            client.put_many(records_queue(number), [b"done"] * BATCH)
            client.done_many(client.get_many(BATCH, records_queue(number), expire=600))
