"""The counters of a pool, for metrics and the live view."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict

BUCKETS_S = (0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 60.0, 300.0, 1800.0)


class RunTimes:
    """A histogram of run times: `counts` by BUCKETS_S, the last for longer times."""

    def __init__(self) -> None:
        self.counts = [0] * (len(BUCKETS_S) + 1)
        self.sum_s = 0.0

    def add(self, seconds: float) -> None:
        """Count one job with this run time."""
        self.counts[bisect_left(BUCKETS_S, seconds)] += 1
        self.sum_s += seconds


class PoolCounters:
    """Jobs by queue and outcome, their run times, and `lost`: jobs whose leases ended first."""

    def __init__(self) -> None:
        self.jobs: dict[tuple[str, str], int] = defaultdict(int)
        self.run_times: dict[str, RunTimes] = defaultdict(RunTimes)
        self.lost = 0

    def ended(self, queue: str, outcome: str, run_s: float) -> None:
        """Count a processed job of this queue."""
        self.jobs[queue, outcome] += 1
        self.run_times[queue].add(run_s)

    @property
    def total(self) -> int:
        """The number of processed jobs."""
        return sum(self.jobs.values())
