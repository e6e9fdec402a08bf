"""How much of one queue is in pages."""

from __future__ import annotations

from msgspec import Struct

from core.pages.paged_delays import PagedDelays
from core.pages.paged_run import PagedRun
from core.store.queues import Queue


class OnDisk(Struct, frozen=True):
    """Waiting jobs of a queue that are not in the memory of this node."""

    jobs: int
    data_bytes: int         # of these jobs


def on_disk(queue: Queue) -> OnDisk:
    """Count them; takes time in proportion to the number of priorities."""
    paged: list[PagedRun | PagedDelays] = [run for run in queue.ready.runs() if isinstance(run, PagedRun)]
    if isinstance(queue.delayed, PagedDelays):
        paged.append(queue.delayed)
    return OnDisk(sum(jobs.paged for jobs in paged), sum(jobs.paged_bytes for jobs in paged))
