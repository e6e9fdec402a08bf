"""The settings of a pool."""

from __future__ import annotations

from typing import Literal, NamedTuple

from sockpq._protocol.arguments import Policy
from sockpq.errors import BadArguments
from sockpq.worker.pool.autoscale import KEEPALIVE_S
from sockpq.worker.pool.balancing import Strategy

Kind = Literal["processes", "threads", "asyncio"]
KINDS = ("processes", "threads", "asyncio")
STRATEGIES = ("fair", "fast")
ALSO_CALLED = {"default": "fair", "fcfs": "fast"}       # as in Celery
CHILDREN_MAX = 10_000
PREFETCH_MAX = 1000
START_LIMIT_S = 60.0        # a start function may load a model, or wait for a server


class PoolSettings(NamedTuple):
    """The settings of a pool; times in seconds.

    `queues`: none means the app's. `most`, `least`: children; equal without autoscaling; `keepalive`: the time after
    the last growth before children are ended. `prefetch`: jobs taken for each idle child, 0: as many as possible. `by`:
    the server's policy for choosing among queues. `tasks_max`, `memory_bytes_max`: after this many tasks, or with so
    much memory, a child is replaced; so is one that is not ready after `start_limit`. `memory_share`: of all memory, 0
    to 1; above it the pool does not grow. `name` and `kind` do not change while it runs.
    """

    queues: tuple[str, ...] = ()
    most: int = 4
    least: int = 4
    strategy: Strategy = "fair"
    prefetch: int = 4
    by: Policy | None = None
    tasks_max: int | None = None
    memory_bytes_max: int | None = None
    memory_share: float | None = None
    time_limit: float | None = None
    soft_time_limit: float | None = None
    name: str = "worker"
    kind: Kind = "processes"
    keepalive: float = KEEPALIVE_S
    start_limit: float = START_LIMIT_S
    heartbeat: float = 2.0

    @property
    def inbox_max(self) -> int:
        """The number of jobs that a child may have at once; one if it may be replaced after any job."""
        return 1 if self.tasks_max or self.memory_bytes_max else self.prefetch or PREFETCH_MAX

    def checked(self) -> PoolSettings:
        """Check the settings and return them; raises BadArguments."""
        if not 0 <= self.least <= self.most <= CHILDREN_MAX or not self.most:
            raise BadArguments(f"{self.least} to {self.most} children: needs 0 <= least <= most <= {CHILDREN_MAX}")
        if self.kind not in KINDS:
            raise BadArguments(f"a pool is one of {', '.join(KINDS)}, not {self.kind!r}")
        if self.strategy not in STRATEGIES:
            raise BadArguments(f"a strategy is {' or '.join(STRATEGIES)}, not {self.strategy!r}")
        if not 0 <= self.prefetch <= PREFETCH_MAX:
            raise BadArguments(f"prefetch {self.prefetch} is not between 1 and {PREFETCH_MAX}, nor 0 for no limit")
        for name in ("keepalive", "start_limit", "tasks_max", "memory_bytes_max", "time_limit", "soft_time_limit"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise BadArguments(f"{name} must be greater than 0, not {value}")
        if self.time_limit and self.soft_time_limit and self.soft_time_limit >= self.time_limit:
            raise BadArguments(f"the soft time limit ({self.soft_time_limit:g} s) is not below the time limit")
        if self.kind == "threads" and (self.time_limit or self.soft_time_limit):
            raise BadArguments("time limits need processes or asyncio, because a thread cannot be ended")
        if self.kind != "processes" and (self.memory_bytes_max or self.tasks_max):
            raise BadArguments("--max-memory-per-child and --max-tasks-per-child need processes")
        return self
