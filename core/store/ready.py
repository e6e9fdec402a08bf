"""The READY jobs of a queue: one run for each priority, with new jobs at its end.

Finding the place of a new job among a million in one sorted list takes twenty comparisons, scattered in memory: that
took longer than the rest of a PUT. Here the place is the end of a run, still in the cache from the jobs before, and a
hand-out takes the beginning of the first run.

Most queues are short, and a plain list is then both the smallest and the fastest; with more than UNSPLIT_JOBS_MAX jobs
it is split into runs.

Unless the queue has ORDER TIME, the first job of a run is its oldest. So the oldest of all is found among the first
jobs of the runs; with very many priorities these are kept sorted.

A job is found by its seq in the run of each priority in turn. With very many priorities only the first SCANNED_RUNS_MAX
runs are searched; for jobs in all other runs, their run is recorded.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain

from msgspec import Struct, field
from sortedcontainers import SortedList

from sockpqd.core.limits import SCANNED_RUNS_MAX, UNSPLIT_JOBS_MAX
from sockpqd.core.store.job import Job
from sockpqd.core.store.job_list import JobList

_NONE: SortedList = SortedList()        # the ranks while there are no runs
_NO_RUNS: dict[int, None] = {}          # shared by all queues without very many priorities, and never changed
_NO_JOBS: dict[int, int] = {}


def place_of(job: Job) -> tuple[int, int, int]:
    """Return the place of the job among the READY ones of its queue."""
    return job.rank, job.when, job.seq


def _place_in_run(job: Job) -> tuple[int, int]:
    return job.when, job.seq


class ReadyJobs(Struct, gc=False, eq=False):
    """Jobs, the next one first. Not tracked by the garbage collector; job.py says why."""

    size: int = 0
    _few: list[Job] = field(default_factory=list)               # all jobs, while there are no runs
    _runs: dict[int, Job | JobList[Job]] | None = None          # by rank; a single job stands for itself
    _ranks: SortedList = field(default_factory=lambda: _NONE)   # of the runs,
    _front: int = 0                                             # and the first of these
    # With many runs: (seq of the first job, rank) of each run except the front one, whose first job changes often.
    _firsts: SortedList | None = None
    _searched: dict[int, None] = field(default_factory=lambda: _NO_RUNS)    # while there are firsts: runs to search,
    _rank_of: dict[int, int] = field(default_factory=lambda: _NO_JOBS)      # and the rank of each seq of the others

    def __iter__(self) -> Iterator[Job]:
        if self._runs is None:
            return iter(self._few)
        runs = map(self._runs.__getitem__, self._ranks)
        return chain.from_iterable(run if isinstance(run, JobList) else (run,) for run in runs)

    def behind(self, job: Job) -> Iterator[Job]:
        """Yield the jobs after the place of `job`, which need not be here."""
        if self._runs is None:
            yield from self._few[bisect_right(self._few, place_of(job), key=place_of):]
            return
        for rank in self._ranks.irange(job.rank):
            run = self._runs[rank]
            if rank != job.rank:
                yield from run if isinstance(run, JobList) else (run,)
            elif isinstance(run, JobList):
                yield from run.behind(job, _place_in_run)
            elif place_of(run) > place_of(job):
                yield run

    @property
    def first(self) -> Job:
        """The next job; there must be one."""
        if self._runs is None:
            return self._few[0]
        run = self._runs[self._front]
        return run[0] if isinstance(run, JobList) else run

    def find(self, seq: int) -> Job | None:
        """Return the job with this seq, in a queue without ORDER TIME; None if there is none."""
        runs = self._runs
        if runs is None:
            return next((job for job in self._few if job.seq == seq), None)
        if self._firsts is None:
            searched: Iterable[int] = runs
        else:
            rank = self._rank_of.get(seq)
            searched = self._searched if rank is None else (rank,)
        for rank in searched:
            run = runs[rank]
            job = run.find(seq) if isinstance(run, JobList) else run
            if job is not None and job.seq == seq:
                return job
        return None

    def oldest_seq(self) -> int:
        """Return the smallest seq, in a queue without ORDER TIME and ITEMLIMIT; there must be a job."""
        runs = self._runs
        if runs is None:
            return min(job.seq for job in self._few)
        if self._firsts is None:
            return min(_first(run).seq for run in runs.values())
        seq: int = min(self.first.seq, self._firsts[0][0])
        return seq

    @property
    def front(self) -> int:
        """The rank of the next job; there must be one."""
        return self._few[0].rank if self._runs is None else self._front

    def add(self, job: Job) -> None:
        """Insert `job` at its place."""
        self.size += 1
        runs = self._runs
        if runs is not None:
            run = runs.get(job.rank)
            if isinstance(run, JobList):
                if self._firsts is not None:
                    if job.rank != self._front and job < run[0]:
                        self._firsts.remove((run[0].seq, job.rank))
                        self._firsts.add((job.seq, job.rank))
                    if job.rank not in self._searched:
                        self._rank_of[job.seq] = job.rank
                run.add(job)
            else:
                self._begin(runs, job, run)
            return
        few = self._few
        if not few or few[-1] < job:
            few.append(job)
        else:
            insort(few, job)
        if self.size > UNSPLIT_JOBS_MAX:
            self._spread()

    def _spread(self) -> None:
        """Split the plain list into runs."""
        few, self._few, self.size = self._few, [], 0
        self._runs, self._ranks, self._front = {}, SortedList(), few[0].rank
        for job in few:
            self.add(job)

    def _begin(self, runs: dict[int, Job | JobList[Job]], job: Job, other: Job | None) -> None:
        """Add a job whose rank no other job has, or only `other`."""
        rank, firsts = job.rank, self._firsts
        if other is None:
            if firsts is not None:
                behind, seq = (rank, job.seq) if rank > self._front else (self._front, self.first.seq)
                firsts.add((seq, behind))
                if len(self._searched) <= SCANNED_RUNS_MAX:
                    self._searched[rank] = None
                else:
                    self._rank_of[job.seq] = rank
            runs[rank] = job
            self._ranks.add(rank)
            self._front = min(self._front, rank)
            if firsts is None and len(runs) > SCANNED_RUNS_MAX:
                self._firsts = SortedList((_first(runs[one]).seq, one) for one in self._ranks if one != self._front)
                self._searched, self._rank_of = dict.fromkeys(self._ranks), {}
        else:
            if firsts is not None:
                if rank != self._front and job < other:
                    firsts.remove((other.seq, rank))
                    firsts.add((job.seq, rank))
                if rank not in self._searched:
                    self._rank_of[job.seq] = rank
            runs[rank] = run = JobList()
            run.add(other)
            run.add(job)

    def count_page(self, jobs: int) -> None:
        """Count `jobs` jobs in a page that was appended to a run, or, if negative, that left it."""
        self.size += jobs

    @property
    def searched_by_seq(self) -> bool:
        """True if the run of some jobs is recorded, so that they are found by seq."""
        return self._firsts is not None

    @property
    def seq_ranks(self) -> tuple[Iterable[int], Mapping[int, int]]:
        """The ranks whose runs are searched by seq, and the rank of each seq of the others; with `searched_by_seq`."""
        return self._searched, self._rank_of

    def restore_seq_ranks(self, searched: Iterable[int] | None, rows: Iterable[tuple[int, Iterable[int]]]) -> None:
        """Take over the `seq_ranks` from when the same jobs were here, in portions.

        `searched`: with the first portion. `rows`: ranks, and seqs of their jobs. Raises KeyError if a rank has no
        run. Without `searched_by_seq`, as with few priorities, every run is searched and nothing is taken over.
        """
        if self._firsts is None or self._runs is None:
            return
        if searched is not None:
            self._searched, self._rank_of = dict.fromkeys(searched), {}
            for rank in self._searched:
                self._runs[rank]
        for rank, seqs in rows:
            self._runs[rank]
            self._rank_of.update(dict.fromkeys(seqs, rank))

    def searches(self, rank: int) -> bool:
        """Return whether a job of this rank is searched for in its run; otherwise the run of each is recorded."""
        return self._firsts is None or rank in self._searched

    def runs(self) -> Iterator[Job | JobList[Job]]:
        """Return the runs in order; a single job stands for a run with only that job."""
        if self._runs is None:
            return iter(self._few)
        return (self._runs[rank] for rank in self._ranks)

    def split_run(self, rank: int) -> JobList[Job] | None:
        """Return the run of this rank, creating it if there was a single job; None if there is none."""
        if self._runs is None and self.size:
            self._spread()
        run = self.run(rank)
        if run is None or isinstance(run, JobList):
            return run
        assert self._runs is not None
        self._runs[rank] = jobs = JobList()
        jobs.add(run)
        return jobs

    def split_ranks(self) -> list[int]:
        """Return the ranks that have a run, the greatest first; none while the jobs are in a plain list."""
        return list(reversed(self._ranks))

    def run(self, rank: int) -> Job | JobList[Job] | None:
        """Return the jobs of a rank that has a run, or its only job; None if there are none."""
        return None if self._runs is None else self._runs.get(rank)

    def replace_run(self, rank: int, run: JobList[Job]) -> None:
        """Replace the run of a rank with `run`, which has the same jobs."""
        assert self._runs is not None
        self._runs[rank] = run

    @property
    def first_of_least_priority(self) -> Job:
        """The first job of the lowest priority; there must be one."""
        if self._runs is None:
            return self._few[bisect_left(self._few, self._few[-1].rank, key=_rank)]
        return _first(self._runs[self._ranks[-1]])

    def take_first(self) -> Job:
        """Remove and return the next job; there must be one."""
        self.size -= 1
        runs = self._runs
        if runs is None:
            return self._few.pop(0)
        run = runs[self._front]
        if isinstance(run, JobList):
            job = run.take_first()
            if not run.size:
                self._end(runs, job)
            elif self._rank_of:
                self._rank_of.pop(job.seq, None)
            return job
        self._end(runs, run)
        return run

    def remove(self, job: Job) -> None:
        """Remove `job`, wherever it is; it must be here."""
        self.size -= 1
        runs = self._runs
        if runs is None:
            del self._few[bisect_left(self._few, job)]
            return
        run = runs[job.rank]
        if isinstance(run, JobList):
            run.remove(job)
            if run.size:
                if self._rank_of:
                    self._rank_of.pop(job.seq, None)
                if self._firsts is not None and job.rank != self._front and job < run[0]:
                    self._firsts.remove((job.seq, job.rank))
                    self._firsts.add((run[0].seq, job.rank))
                return
        self._end(runs, job)

    def _end(self, runs: dict[int, Job | JobList[Job]], last: Job) -> None:
        """Remove the run whose last job this was."""
        rank = last.rank
        del runs[rank]
        self._ranks.remove(rank)
        if not runs:
            self._runs, self._ranks = None, _NONE
            self._search_all()
            return
        front = rank == self._front
        if front:
            self._front = self._ranks[0]
        if self._firsts is not None:
            self._firsts.remove((self.first.seq, self._front) if front else (last.seq, rank))
            self._searched.pop(rank, None)
            self._rank_of.pop(last.seq, None)
            if len(runs) <= SCANNED_RUNS_MAX // 2:
                self._search_all()

    def _search_all(self) -> None:
        """Forget the data that are only needed with very many priorities."""
        self._firsts, self._searched, self._rank_of = None, _NO_RUNS, _NO_JOBS


def _rank(job: Job) -> int:
    return job.rank


def _first(run: Job | JobList[Job]) -> Job:
    return run[0] if isinstance(run, JobList) else run
