"""Simulates tenants of which one floods a queue: how long the others' jobs wait, for each setting of the queue."""

from __future__ import annotations

from functools import cache
from heapq import heappop, heappush
from random import Random

from msgspec import Struct

from sockpqd.core import (
    Configure,
    ConfigureQueue,
    Done,
    FairChange,
    Get,
    Handed,
    Machine,
    Operation,
    Put,
    PutWith,
    QueueChange,
    Reply,
    Sched,
)

WORKERS = 10
QUIET = 9                       # tenants that put a job now and then
RUN_MS = 200                    # mean time of a job
QUIET_LOAD = 0.6                # of the workers' time, all quiet tenants together
FLOOD_LOAD = 2.0                # what the other one puts, in the same measure
MINUTES = 4
START_MS = 1_000_000
SEED = 1


class TenantCase(Struct, frozen=True):
    """Settings of the queue, and levels of FAIR. `flood`: whether the tenant with many jobs is there."""

    name: str
    change: QueueChange
    flood: bool = True
    levels_s: tuple[int, ...] | None = None


ONE_LEVEL_S = (0, 10**9)        # nobody reaches the second one
ALONE = TenantCase("the nine alone", QueueChange(), flood=False)
FIFO = TenantCase("no setting", QueueChange())
LIMITED = TenantCase("`SCHED GROUPS GROUPLIMIT 3`", QueueChange(sched=Sched.GROUPS, group_limit=3))
LEVELS = TenantCase("`SCHED FAIR`, levels as they are", QueueChange(sched=Sched.FAIR))
FAIR = TenantCase("`SCHED FAIR`, one level", QueueChange(sched=Sched.FAIR), levels_s=ONE_LEVEL_S)
BOTH = TenantCase(
    "`SCHED FAIR GROUPLIMIT 3`, one level", QueueChange(sched=Sched.FAIR, group_limit=3), levels_s=ONE_LEVEL_S,
)
TENANT_CASES = (ALONE, FIFO, LEVELS, FAIR, LIMITED, BOTH)


class Waits(Struct, frozen=True):
    """The result. `ms`: the waits of the quiet tenants' jobs for a worker, in rising order.

    `flooded`: the number of jobs of the other tenant that were handed out. `busy`: the part of the workers' time in
    which they worked.
    """

    ms: list[int]
    flooded: int
    busy: float

    def percentile(self, share: float) -> int:
        """The wait that this share of the jobs did not exceed, in milliseconds."""
        return self.ms[min(len(self.ms) - 1, int(share * len(self.ms)))]


class Tenants:
    """A state machine, its time, workers that take what it gives, and tenants that put at random moments."""

    def __init__(self, case: TenantCase) -> None:
        self._machine = Machine()
        self._random = Random(SEED)
        self._now_ms = 0
        self._free = WORKERS
        self._events: list[tuple[int, int, int]] = []       # when; a job's id, or 0: a put; of which tenant
        self._run_ms = 0
        self.waits: list[int] = []
        self.flooded = 0
        self._mean_ms = [RUN_MS / WORKERS * QUIET / QUIET_LOAD] * QUIET
        if case.flood:
            self._mean_ms.append(RUN_MS / WORKERS / FLOOD_LOAD)
        self._do(ConfigureQueue("work", case.change))
        if case.levels_s is not None:
            self._do(Configure(fair=FairChange(case.levels_s)))

    def go(self) -> Waits:
        """Let them put and work for some minutes."""
        for tenant in range(len(self._mean_ms)):
            self._expect(tenant)
        while self._events[0][0] < MINUTES * 60_000:
            self._now_ms, job, tenant = heappop(self._events)
            if job:
                self._do(Done(job))
                self._free += 1
            else:
                self._do(PutWith(Put("work", 0, b"%d %d" % (tenant, self._now_ms)), group=f"tenant_{tenant}"))
                self._expect(tenant)
            while self._free and self._take():
                self._free -= 1
        return Waits(sorted(self.waits), self.flooded, self._run_ms / (WORKERS * MINUTES * 60_000))

    def _expect(self, tenant: int) -> None:
        when_ms = self._now_ms + round(self._random.expovariate(1 / self._mean_ms[tenant]))
        heappush(self._events, (when_ms, 0, tenant))

    def _take(self) -> bool:
        (reply,) = self._do(Get(("work",)))
        if not isinstance(reply, Handed):
            return False
        tenant, put_ms = map(int, reply.data.split())
        run_ms = round(self._random.expovariate(1 / RUN_MS))
        self._run_ms += run_ms
        heappush(self._events, (self._now_ms + run_ms, reply.id, tenant))
        if tenant < QUIET:
            self.waits.append(self._now_ms - put_ms)
        else:
            self.flooded += 1
        return True

    def _do(self, operation: Operation) -> list[Reply]:
        machine = self._machine
        return machine.apply(machine.index + 1, START_MS + self._now_ms, 0, [operation]).replies


@cache
def waits(case: TenantCase) -> Waits:
    """The waits with these settings: the same each time."""
    return Tenants(case).go()
