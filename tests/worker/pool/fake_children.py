"""Children that a test plays: they take jobs and report what the test wants, without any process."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence, Set
from time import monotonic

from sockpq.model import Handed
from sockpq.worker.children.child import Parent, Result, Usage
from sockpq.worker.children.spawning import Spawner
from sockpq.worker.outcome import Outcome
from sockpq.worker.pool.settings import PoolSettings


class FakeChild:
    """Reports by itself unless the `silent` ones are counted; works until the test calls end()."""

    def __init__(self, number: int, parent: Parent, family: FakeChildren) -> None:
        self.number = number
        self.parent = parent
        self.family = family
        self.job: Handed | None = None
        self.inbox: deque[tuple[Handed, float]] = deque()
        self.stopped = False

    def start(self) -> None:
        self.family.alive[self.number] = self
        if self.family.silent:
            self.family.silent -= 1
        else:
            self.later(self.parent.ready, self.number)

    def give(self, jobs: Sequence[Handed], until: float, timed: Set[int]) -> None:
        self.inbox += [(job, until) for job in jobs]
        self.go_on()

    def take_back(self) -> set[int]:
        ids = {job.id for job, _ in self.inbox}
        self.inbox.clear()
        return ids

    def go_on(self) -> None:
        """Begin the next job of the inbox, unless one is in progress."""
        if self.job or not self.inbox:
            return
        job, until = self.inbox.popleft()
        if monotonic() >= until:
            self.later(self.parent.ended, self.number, [Result(job.id, None, Usage())])
            self.go_on()
            return
        self.job = job
        self.family.given[self.number] += 1
        self.family.seen.append(job)
        if self.family.run_s is not None:
            asyncio.get_running_loop().call_later(self.family.run_s, self.end)

    def stop(self) -> None:
        self.stopped = True
        if self.job is None:
            self._go("stopped")

    def kill(self) -> None:
        self._go("killed")

    def end(self, outcome: Outcome | None = None, usage: Usage | None = None) -> None:
        """End the job in progress with this outcome, by default done."""
        job, self.job = self.job, None
        if job and self.number in self.family.alive:
            self.go_on()
            self.parent.ended(self.number, [Result(job.id, outcome or Outcome("done"), usage or Usage())])
            if self.stopped and not self.job:
                self._go("stopped")

    def _go(self, why: str) -> None:
        if self.family.alive.pop(self.number, None):
            self.family.ends.append((self.number, why, self.job is not None))
            self.later(self.parent.gone, self.number, why)

    def later(self, *call: object) -> None:
        asyncio.get_running_loop().call_soon(*call)     # type: ignore[arg-type]


class FakeChildren:
    """All fake children. `run_s`: how long each job takes; None: until the test ends it."""

    def __init__(self, run_s: float | None = None, silent: int = 0) -> None:
        self.run_s = run_s
        self.silent = silent
        self.alive: dict[int, FakeChild] = {}
        self.given: Counter[int] = Counter()
        self.seen: list[Handed] = []
        self.ends: list[tuple[int, str, bool]] = []

    @property
    def busy(self) -> list[FakeChild]:
        """Return the children that are processing a job."""
        return [child for child in self.alive.values() if child.job]

    def spawner(self) -> Spawner:
        """Return the function that starts children, for Pool."""
        def spawn(number: int, parent: Parent, settings: PoolSettings) -> FakeChild:
            return FakeChild(number, parent, self)
        return Spawner(spawn, lambda: None)
