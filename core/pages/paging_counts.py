"""The number of jobs of one queue that are outside memory."""

from __future__ import annotations

from msgspec import Struct

from sockpqd.core.pages.bodies import OutsideCounts
from sockpqd.core.pages.grouped_ready import GroupedReady, own_jobs
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pages import Pages
from sockpqd.core.store.queues import Queue


class PagingCounts(Struct, frozen=True):
    """The waiting jobs of a queue that are outside this node's memory, entirely or only with their bodies."""

    jobs: int
    data_bytes: int         # of these jobs


def paging_counts(queue: Queue, pages: Pages) -> PagingCounts:
    """Count the jobs of the queue outside memory; the time is proportional to the number of priorities."""
    bodies = pages.bodies.outside.get(queue.name) or OutsideCounts()
    if not pages.jobs:
        return PagingCounts(bodies.jobs, bodies.data_bytes)
    paged: list[PagedRun | PagedDelays] = [run for run in own_jobs(queue).runs() if isinstance(run, PagedRun)]
    if isinstance(queue.delayed, PagedDelays):
        paged.append(queue.delayed)
    outside = queue.ready.outside if isinstance(queue.ready, GroupedReady) else None
    of_groups = (0, 0) if outside is None else (outside.jobs, outside.data_bytes)
    return PagingCounts(
        bodies.jobs + of_groups[0] + sum(jobs.paged for jobs in paged),
        bodies.data_bytes + of_groups[1] + sum(jobs.paged_bytes for jobs in paged))
