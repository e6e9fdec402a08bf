"""The children of a pool: their states (starting, ready or retiring) and their jobs."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from time import monotonic

from sockpq.model import Handed
from sockpq.worker.children.child import Child
from sockpq.worker.pool.balancing import Balancer, Strategy


@dataclass
class Member:
    """A child. `jobs`: assigned to it; it has been processing the first one since `begun_at`.

    `retiring`: it gets no more jobs.
    """

    child: Child
    started_at: float
    ready: bool = False
    retiring: bool = False
    retired_at: float = 0.0
    killed: str | None = None
    begun_at: float = 0.0
    tasks: int = 0
    cancelled_at: float | None = None
    jobs: deque[Handed] = field(default_factory=deque)

    @property
    def job(self) -> Handed | None:
        return self.jobs[0] if self.jobs else None


class Members:
    """All existing children. `spawn` creates one with a unique number."""

    def __init__(self, spawn: Callable[[int], Child], strategy: Strategy, inbox_max: int) -> None:
        self._spawn = spawn
        self._balancer = Balancer(strategy, inbox_max)
        self._members: dict[int, Member] = {}
        self._last = 0

    # queries

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def get(self, number: int) -> Member | None:
        """Return the child with this number, if it exists."""
        return self._members.get(number)

    @property
    def size(self) -> int:
        """The number of children that work or will."""
        return sum(not member.retiring for member in self._members.values())

    @property
    def empty(self) -> bool:
        """True if there is no child at all."""
        return not self._members

    @property
    def busy(self) -> int:
        """The number of children that are processing a job."""
        return sum(bool(member.jobs) for member in self._members.values())

    @property
    def held(self) -> int:
        """The number of jobs that children have."""
        return sum(len(member.jobs) for member in self._members.values())

    @property
    def ready(self) -> int:
        """The number of children that are ready or working."""
        return sum(member.ready and not member.retiring for member in self._members.values())

    @property
    def room(self) -> int:
        """The number of jobs that can be given to children now."""
        return self._balancer.room

    @property
    def idle(self) -> list[int]:
        """The ready children without any job."""
        return self._balancer.idle()

    # changing

    def start_one(self) -> None:
        self._last += 1
        child = self._spawn(self._last)
        self._members[child.number] = Member(child, monotonic())
        child.start()

    def is_ready(self, number: int) -> None:
        """Record that the child can work."""
        member = self._members.get(number)
        if member and not member.ready and not member.retiring:
            member.ready = True
            self._balancer.add(number)

    def deal(self, jobs: Sequence[Handed], until: float, timed: Set[int] = frozenset()) -> int:
        """Give these jobs to children, by the strategy; returns how many, counted from the first, were given.

        None is begun at or after `until`, on the monotonic clock. `timed`: see Child.give.
        """
        shares: dict[int, list[Handed]] = {}
        numbers = self._balancer.deal(len(jobs))
        for job, number in zip(jobs, numbers, strict=False):
            shares.setdefault(number, []).append(job)
        for number, share in shares.items():
            member = self._members[number]
            if not member.jobs:
                member.begun_at = monotonic()
            member.jobs += share
            member.child.give(share, until, {job.id for job in share if job.id in timed})
        return len(numbers)

    def take_back(self, number: int) -> list[Handed]:
        """Remove and return the jobs that this child has not begun."""
        member = self._members[number]
        ids = member.child.take_back()
        if not ids:
            return []
        back = [job for job in member.jobs if job.id in ids]
        member.jobs = deque(job for job in member.jobs if job.id not in ids)
        self._balancer.ended(number, len(back))
        return back

    def take_back_queued(self) -> list[Handed]:
        """Take back and return the jobs that wait behind others."""
        return [
            job for number, member in self._members.items() if len(member.jobs) > 1 for job in self.take_back(number)
        ]

    def ended(self, number: int, job: int, begun: bool) -> Handed | None:
        """Record the end of this job, which the child had `begun` or not; returns it, None if it was not there."""
        member = self._members.get(number)
        if member is None or not member.jobs or member.jobs[0].id != job:
            return None
        member.begun_at = member.retired_at = monotonic()
        member.tasks += begun
        self._balancer.ended(number)
        return member.jobs.popleft()

    def retire(self, number: int) -> list[Handed]:
        """Let the child end after its job; returns the jobs that it has not begun."""
        member = self._members[number]
        back = self.take_back(number)
        if not member.retiring:
            member.retiring = True
            member.retired_at = monotonic()
            self._balancer.remove(number)
            member.child.stop()
        return back

    def kill(self, number: int, why: str) -> None:
        """Kill the child; the outcome of its job is reported when it has ended."""
        member = self._members.get(number)
        if member and member.killed is None:
            member.killed = why
            member.retiring = True
            member.retired_at = monotonic()
            self._balancer.remove(number)
            member.child.kill()

    def gone(self, number: int) -> Member | None:
        """Remove the child, which has ended."""
        self._balancer.remove(number)
        return self._members.pop(number, None)

    def configure(self, strategy: Strategy, inbox_max: int) -> None:
        """Change the strategy by which children are chosen."""
        self._balancer.strategy, self._balancer.inbox_max = strategy, inbox_max
