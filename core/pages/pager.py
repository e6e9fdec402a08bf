"""Keeps the waiting jobs in memory within a budget: beyond it, the jobs behind the fronts of their queues are paged.

Below the budget nothing happens. Beyond it the pager goes through all queues, each from its end, until an eighth of the
budget is free again. At first only jobs far behind a front are paged, in large pages; if that is not enough, with very
many queues or priorities, the fronts and the pages become smaller.

The handles by which paged jobs are found count as well. Even if they use most of the budget, the jobs in memory keep a
part of it: paging these too would hardly reduce the handles, only make the pages smaller.

Queues with ORDER TIME or ITEMLIMIT list their READY jobs a second time, so paging would free nothing: they stay in
memory. So do the jobs that extras.py excludes, RUNNING jobs, and short queues. In a queue with several groups each of
them has a front in memory (grouped_ready.py). DELAYED jobs are paged in all queues, the ones that are due last.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from sockpqd.core.limits import JOB_BYTES
from sockpqd.core.pages.delayed_pages import DelayedPages
from sockpqd.core.pages.grouped_ready import GroupedReady, own_jobs
from sockpqd.core.pages.paged_delays import PagedDelays
from sockpqd.core.pages.paged_run import PagedRun
from sockpqd.core.pages.pages import Pages
from sockpqd.core.store.delayed import Delays
from sockpqd.core.store.job_list import JobList
from sockpqd.core.store.queues import Queue, Queues

ENDED = object()
LOOKS = 256             # queues or priorities looked at in one step
BODIES = 1              # the stage in which bodies leave without their jobs
LEAST_PART = 4          # that part of the budget is for the jobs in memory, however much the handles of others take


class Stage(Struct, frozen=True):
    """The limits of one round of paging: how many jobs stay in memory, how large pages are."""

    stays: int          # jobs at the front of a queue
    page_jobs_max: int
    page_jobs_min: int


STAGES = (Stage(2000, 250, 100), Stage(500, 125, 32), Stage(100, 64, 16))


class Pager:
    """Pages out jobs of the state with these pages. `hot_bytes_max`: the budget; 0 pages out as much as possible.

    `resident`: nothing is paged out, and pages of an earlier process come back into memory.
    """

    __slots__ = (
        "_began_bytes", "_over_bytes", "_round", "_rounds", "_stage", "_stages", "_walked_jobs", "hot_bytes_max",
        "pages", "resident",
    )

    def __init__(
        self, pages: Pages, hot_bytes_max: int, stages: tuple[Stage, ...] = STAGES, *, resident: bool = False,
    ) -> None:
        self.pages = pages
        self.resident = resident
        self.hot_bytes_max = hot_bytes_max
        self._stages = stages
        self._rounds = (stages[0], None, *stages[1:])       # None: bodies without their jobs, see BODIES
        self._walked_jobs = 0       # this many waiting jobs stayed in memory, and bodies were enough; 0: not so
        self._rest()

    def _rest(self) -> None:
        """Do nothing until the budget is used up."""
        self._round: Iterator[object] | None = None
        self._stage = 0
        self._began_bytes = 0                       # what was in memory before the present rounds
        self._over_bytes = 0                        # nothing is done below that, nor within the budget

    def another(self) -> Pager:
        """Return an empty pager for another state."""
        return Pager(self.pages.another(), self.hot_bytes_max, self._stages, resident=self.resident)

    def hot_bytes(self, queues: Queues) -> int:
        """Return the approximate memory of the waiting jobs, and of the large bodies of all others, in bytes.

        The handles of paged jobs are included.
        """
        return self._in_memory(queues) + self.pages.handles_bytes

    def _in_memory(self, queues: Queues) -> int:
        pages, bodies = self.pages, self.pages.bodies
        bodies.settle()
        return (queues.waiting_bytes - bodies.waiting_bytes + bodies.hot_bytes
                + JOB_BYTES * queues.waiting - pages.saved_bytes)

    @property
    def _budget(self) -> int:
        """The budget for jobs in memory: what the handles of paged jobs leave, but at least a fixed part."""
        return max(self.hot_bytes_max - self.pages.handles_bytes, self.hot_bytes_max // LEAST_PART)

    def crowded(self, queues: Queues) -> bool:
        """Return whether the budget is exceeded by a quarter."""
        return not self.resident and self._in_memory(queues) > self._budget + self.hot_bytes_max // 4

    def relieve(self, queues: Queues, delays: Delays) -> None:
        """Page out until nothing more can be done."""
        while self.page_out_some(queues, delays):
            pass

    def page_out_some(self, queues: Queues, delays: Delays) -> bool:
        """Page out one block if the budget is exceeded; returns whether there may be more to do."""
        if self.resident:
            return False
        hot = self._in_memory(queues)
        budget = self._budget
        if self._round is None:
            # After a fruitless search, the next one begins only when there is an eighth more in memory than at the end
            # of that one, or less in the meantime.
            self._over_bytes = min(self._over_bytes, hot + hot // 8)
            if hot <= budget or hot <= self._over_bytes:
                return False
            self._begin_rounds(queues, delays, self._first(queues))
        elif hot <= budget - budget // 8:
            self._rest()
            return False
        assert self._round is not None
        self.pages.full = False                 # a step that writes nothing must not find what an earlier one left
        ended = next(self._round, ENDED) is ENDED
        if self.pages.full or (ended and not self._begin_next(queues, delays, hot)):
            self._round = None
            self._over_bytes = hot + hot // 8
            return False
        return True

    def _begin_next(self, queues: Queues, delays: Delays, hot: int) -> bool:
        """Begin the next round; returns False when it would be pointless, because the last ones gained little."""
        if self._stage + 1 < len(self._rounds):
            self._begin(queues, delays, self._stage + 1)
        elif self._began_bytes - hot > self.hot_bytes_max // 16:
            self._begin_rounds(queues, delays, 0)
        else:
            return False
        return True

    def _first(self, queues: Queues) -> int:
        """Return the first stage, chosen so that for a few bodies not all unpageable jobs are inspected again."""
        jobs = queues.waiting - self.pages.jobs
        self._walked_jobs = min(self._walked_jobs, jobs)
        return BODIES if jobs < self._walked_jobs + self._walked_jobs // 8 else 0

    def _begin_rounds(self, queues: Queues, delays: Delays, stage: int) -> None:
        self._began_bytes = self._in_memory(queues)
        self._begin(queues, delays, stage)

    def _begin(self, queues: Queues, delays: Delays, stage: int) -> None:
        if stage != BODIES:
            self._walked_jobs = 0
        elif not self._walked_jobs:
            self._walked_jobs = queues.waiting - self.pages.jobs
        self._stage = stage
        now = self._rounds[stage]
        self._round = _bodies(self.pages) if now is None else _round(queues, delays, self.pages, now)


def _bodies(pages: Pages) -> Iterator[None]:
    """Page out bodies, the oldest first, in steps."""
    while pages.write_body():
        yield


def _round(queues: Queues, delays: Delays, pages: Pages, stage: Stage) -> Iterator[None]:
    """Page out what the stage allows, in steps."""
    for number, name in enumerate(list(queues.by_name)):
        queue = queues.by_name.get(name)
        if queue is not None and queue.delayed is not None:
            yield from _delayed_of_queue(queue, delays, pages, stage)
        if queue is not None and queue.seqs is None:
            for _ in _of_queue(queue, pages, stage):
                yield
                if queue.seqs is not None:                  # any more
                    break
        if number % LOOKS == LOOKS - 1:
            yield


def _delayed_of_queue(queue: Queue, delays: Delays, pages: Pages, stage: Stage) -> Iterator[None]:
    """Page out DELAYED jobs of one queue, in steps."""
    jobs = queue.delayed
    if isinstance(jobs, JobList) and jobs.size > stage.stays + stage.page_jobs_min:
        jobs = PagedDelays.of_queue(queue, DelayedPages.of(delays, pages))
    if isinstance(jobs, PagedDelays):
        yield from jobs.page_out(stage.stays, stage.page_jobs_max, stage.page_jobs_min)


def _of_queue(queue: Queue, pages: Pages, stage: Stage) -> Iterator[None]:
    """Page out READY jobs of one queue, in steps: those of other groups, then its own, the lowest priority first."""
    if isinstance(queue.ready, GroupedReady):
        yield from queue.ready.page_out(pages, stage.stays, stage.page_jobs_max, stage.page_jobs_min)
    ready = own_jobs(queue)
    for number, rank in enumerate(ready.split_ranks()):
        run = ready.run(rank)
        if isinstance(run, JobList):
            stays = stage.stays if rank == ready.front else stage.page_jobs_min
            if not isinstance(run, PagedRun) and run.size > stays + stage.page_jobs_min:
                run = PagedRun.of_run(run, pages)
                ready.replace_run(rank, run)
            if isinstance(run, PagedRun):
                yield from run.page_out(stays, stage.page_jobs_max, stage.page_jobs_min)
        if number % LOOKS == LOOKS - 1:
            yield
