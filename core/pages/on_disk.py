"""How much of one queue is outside memory."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.pages.bodies import Outside
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pages import Pages
from sockpqd.core.store.queues import Queue


class OnDisk(Struct, frozen=True):
    """Waiting jobs of a queue that are not in the memory of this node, or whose bodies are not."""

    jobs: int
    data_bytes: int         # of these jobs


def on_disk(queue: Queue, pages: Pages) -> OnDisk:
    """Count them; takes time in proportion to the number of priorities."""
    bodies = pages.bodies.outside.get(queue.name) or Outside()
    if not pages.jobs:
        return OnDisk(bodies.jobs, bodies.data_bytes)
    paged: list[PagedRun | PagedDelays] = [run for run in queue.ready.runs() if isinstance(run, PagedRun)]
    if isinstance(queue.delayed, PagedDelays):
        paged.append(queue.delayed)
    return OnDisk(
        bodies.jobs + sum(jobs.paged for jobs in paged), bodies.data_bytes + sum(jobs.paged_bytes for jobs in paged))
