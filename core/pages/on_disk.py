"""How much of one queue is in pages."""

from __future__ import annotations

from msgspec import Struct

from core.pages.paged_run import PagedRun
from core.store.queues import Queue


class OnDisk(Struct, frozen=True):
    """Waiting jobs of a queue that are not in the memory of this node."""

    jobs: int
    data_bytes: int         # of these jobs


def on_disk(queue: Queue) -> OnDisk:
    """Count them; takes time in proportion to the number of priorities."""
    runs = [run for run in queue.ready.runs() if isinstance(run, PagedRun)]
    return OnDisk(sum(run.paged for run in runs), sum(run.paged_bytes for run in runs))
