"""Workers that do the queries of a case by a policy. Nothing waits: time is the state machine's."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from heapq import heappop, heappush

from msgspec import Struct
from msgspec.structs import replace

from bench.fairness.cases import Case, Query
from sockpqd.core import (
    Configure,
    Done,
    End,
    FairChange,
    Get,
    GetWith,
    Handed,
    How,
    Machine,
    Operation,
    Policy,
    Put,
    PutWith,
    Reply,
)

SLICE_MS = 1000
START_MS = 1_000_000


class Discipline(Struct, frozen=True):
    """A way to do the work. By FAIR in slices, otherwise each query in one piece; by PRIORITY short ones first."""

    name: str
    policy: Policy
    multiplier: int = 2


FIFO = Discipline("FIFO", Policy.ORDER)
PRIORITY = Discipline("PRIORITY", Policy.PRIORITY)
FAIR = Discipline("FAIR", Policy.FAIR)
FAIR_4 = Discipline("FAIR, MULTIPLIER 4", Policy.FAIR, 4)
DISCIPLINES = (FIFO, PRIORITY, FAIR, FAIR_4)


class Slice(Struct, frozen=True):
    """A worker has a query for this long; `used_ms`: for how long the query had run before."""

    worker: int
    query: int
    start_ms: int
    end_ms: int
    used_ms: int


class Course(Struct, frozen=True):
    """The result: each run, and when each query was done, in ms since its arrival."""

    case: Case
    runs: list[Slice]
    latency_ms: dict[int, int]

    def short_ms(self) -> list[int]:
        """The latencies of the short queries, in rising order."""
        return sorted(ms for query, ms in self.latency_ms.items() if self.case.queries[query].kind == 0)

    @property
    def mean_s(self) -> float:
        """The mean latency of the short ones."""
        return sum(self.short_ms()) / len(self.short_ms()) / 1000

    @property
    def p99_s(self) -> float:
        """The 99th percentile of the latencies of the short ones, by nearest rank: of nine the longest."""
        short = self.short_ms()
        return short[-(-99 * len(short) // 100) - 1] / 1000

    @property
    def long_s(self) -> float:
        """The latency of the long one; of several the longest."""
        queries = self.case.queries
        return max(ms for query, ms in self.latency_ms.items() if queries[query].kind) / 1000

    def shares(self, window_ms: int) -> list[list[float]]:
        """For each window of time, how much of it went to queries in each level of the case."""
        levels_s = self.case.levels_s
        windows = [[0.0] * len(levels_s) for _ in range(self.case.until_ms // window_ms)]
        for run in self.runs:
            for level, start_ms, end_ms in _by_level(run, levels_s):
                for number in range(start_ms // window_ms, min(end_ms // window_ms + 1, len(windows))):
                    within = min(end_ms, (number + 1) * window_ms) - max(start_ms, number * window_ms)
                    windows[number][level] += within
        return [[part / (sum(window) or 1) for part in window] for window in windows]


def _by_level(run: Slice, levels_s: tuple[int, ...]) -> Iterable[tuple[int, int, int]]:
    """The parts of a run in each level: from when, until when."""
    for level, least_s in enumerate(levels_s):
        most_ms = levels_s[level + 1] * 1000 if level + 1 < len(levels_s) else run.used_ms + run.end_ms
        first = max(run.start_ms, run.start_ms + least_s * 1000 - run.used_ms)
        last = min(run.end_ms, run.start_ms + most_ms - run.used_ms)
        if first < last:
            yield level, first, last


class Simulation:
    """A state machine, its time, and workers."""

    def __init__(self, case: Case, discipline: Discipline, workers: int) -> None:
        self._machine = Machine()
        self._case = case
        self._contender = discipline
        self._fair = discipline.policy is Policy.FAIR
        self._now_ms = 0
        self._free = list(range(workers))
        self._queries = list(case.queries)
        self._arrives_ms = [query.arrives_ms for query in case.queries]
        self._to_come = sorted(range(len(case.queries)), key=lambda number: (case.queries[number].arrives_ms, number))
        self._used_ms = [0] * len(case.queries)
        self._busy: list[tuple[int, int, int, int, int]] = []       # until when, worker, job id, query, for how long
        self.runs: list[Slice] = []
        self.latency_ms: dict[int, int] = {}
        self._do(Configure(fair=FairChange(case.levels_s, multiplier=discipline.multiplier)))

    def go(self) -> Course:
        """Let the workers work until everything is done, or until the end of the case."""
        while self._next_ms() is not None and (not self._case.until_ms or self._now_ms < self._case.until_ms):
            self._now_ms = self._next_ms() or 0
            while self._busy and self._busy[0][0] == self._now_ms:
                self._end(*heappop(self._busy)[1:])
            while self._to_come and self._arrives_ms[self._to_come[0]] <= self._now_ms:
                self._put(self._to_come.pop(0))
            while self._free and self._begin(self._free[0]):
                del self._free[0]
        return Course(replace(self._case, queries=tuple(self._queries)), self.runs, self.latency_ms)

    def _next_ms(self) -> int | None:
        times = [self._arrives_ms[number] for number in self._to_come[:1]] + [one[0] for one in self._busy[:1]]
        return min(times, default=None)

    def _put(self, number: int) -> None:
        query = self._queries[number]
        priority = -query.kind if self._contender.policy is Policy.PRIORITY else 0
        put = Put("q", priority, b"%d" % number, f"query_{number}")
        after = tuple(f"query_{one}" for one in query.after)
        self._do(PutWith(put, after=after, group=query.group or f"query_{number}"))

    def _begin(self, worker: int) -> bool:
        """Let the worker take a job; return whether there is one."""
        (reply,) = self._do(GetWith(Get(("q",)), policy=self._contender.policy))
        if not isinstance(reply, Handed):
            return False
        number = int(reply.data)
        query, used_ms = self._queries[number], self._used_ms[number]
        left_ms = query.run_ms - used_ms
        run_ms = min(SLICE_MS, left_ms) if self._fair and not query.in_one_piece else left_ms
        self.runs.append(Slice(worker, number, self._now_ms, self._now_ms + run_ms, used_ms))
        heappush(self._busy, (self._now_ms + run_ms, worker, reply.id, number, run_ms))
        self._used_ms[number] += run_ms
        return True

    def _end(self, worker: int, job: int, number: int, run_ms: int) -> None:
        """Give back the worker's job, done or not."""
        self._free.append(worker)
        self._free.sort()
        if self._used_ms[number] < self._queries[number].run_ms:
            self._do(End(job, How.LATER, yielded=True, ran_ms=run_ms))
            return
        self._do(Done(job))
        self.latency_ms[number] = self._now_ms - self._arrives_ms[number]
        if self._case.until_ms:
            self._replace(self._queries[number])

    def _replace(self, query: Query) -> None:
        """Add another query of the same kind."""
        self._queries.append(Query(query.run_ms, query.kind, self._now_ms))
        self._arrives_ms.append(self._now_ms)
        self._used_ms.append(0)
        self._to_come.append(len(self._queries) - 1)

    def _do(self, operation: Operation) -> list[Reply]:
        machine = self._machine
        return machine.apply(machine.index + 1, START_MS + self._now_ms, 0, [operation]).replies


@cache
def simulate(case: Case, discipline: Discipline, workers: int) -> Course:
    """Let this many workers do the queries. The same course each time, so it is kept for tables and pictures."""
    return Simulation(case, discipline, workers).go()
