"""The children of a pool and how each stands: starting, ready or retiring; and the jobs of each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from time import monotonic

from sockpq.model import Handed
from sockpq.worker.children.child import Child
from sockpq.worker.pool.balancing import Balancer, Strategy


@dataclass
class Member:
    """A child: `job` is what it works on, since `begun_at`; `inbox` what it will. `retiring`: it gets no more jobs."""

    child: Child
    started_at: float
    ready: bool = False
    retiring: bool = False
    retired_at: float = 0.0
    killed: str | None = None
    job: Handed | None = None
    begun_at: float = 0.0
    tasks: int = 0
    inbox: deque[Handed] = field(default_factory=deque)


class Roster:
    """All children that are there. `spawn` makes one with a number of its own."""

    def __init__(self, spawn: Callable[[int], Child], strategy: Strategy, inbox_max: int) -> None:
        self._spawn = spawn
        self._balancer = Balancer(strategy, inbox_max)
        self._members: dict[int, Member] = {}
        self._last = 0

    # looking

    def __iter__(self) -> Iterator[Member]:
        return iter(list(self._members.values()))

    def get(self, number: int) -> Member | None:
        """The child with this number, if it is there."""
        return self._members.get(number)

    @property
    def size(self) -> int:
        """Children that work or will."""
        return sum(not member.retiring for member in self._members.values())

    @property
    def empty(self) -> bool:
        """Is there no child at all?"""
        return not self._members

    @property
    def busy(self) -> int:
        """Children that work on a job."""
        return sum(member.job is not None for member in self._members.values())

    @property
    def ready(self) -> int:
        """Children that can work, or do."""
        return sum(member.ready and not member.retiring for member in self._members.values())

    @property
    def idle(self) -> list[int]:
        """The ready children without any job."""
        return self._balancer.idle()

    # changing

    def start_one(self) -> None:
        """Start a child."""
        self._last += 1
        child = self._spawn(self._last)
        self._members[child.number] = Member(child, monotonic())
        child.start()

    def is_ready(self, number: int) -> None:
        """It can work."""
        member = self._members.get(number)
        if member and not member.ready and not member.retiring:
            member.ready = True
            self._balancer.add(number)

    def assign(self, job: Handed) -> bool:
        """Give the job to a child, by the strategy; False when it must wait."""
        number = self._balancer.choose()
        if number is None:
            return False
        member = self._members[number]
        member.inbox.append(job)
        if member.job is None:
            self._begin(member)
        return True

    def ended(self, number: int, go_on: bool) -> None:
        """It has worked on its job; if it shall `go_on`, the next one of its inbox begins."""
        member = self._members[number]
        member.job = None
        member.tasks += 1
        member.retired_at = monotonic()
        self._balancer.ended(number)
        if member.inbox and go_on and not member.retiring:
            self._begin(member)

    def retire(self, number: int) -> list[Handed]:
        """Let it end after its job; returns the jobs of its inbox."""
        member = self._members[number]
        back = list(member.inbox)
        member.inbox.clear()
        if not member.retiring:
            member.retiring = True
            member.retired_at = monotonic()
            self._balancer.remove(number)
            member.child.stop()
        return back

    def kill(self, number: int, why: str) -> None:
        """Kill it; what was its job is told when it is gone."""
        member = self._members.get(number)
        if member and member.killed is None:
            member.killed = why
            member.retiring = True
            member.retired_at = monotonic()
            self._balancer.remove(number)
            member.child.kill()

    def gone(self, number: int) -> Member | None:
        """It is not there any more."""
        self._balancer.remove(number)
        return self._members.pop(number, None)

    def configure(self, strategy: Strategy, inbox_max: int) -> None:
        """Choose children in another way from now on."""
        self._balancer.strategy, self._balancer.inbox_max = strategy, inbox_max

    def _begin(self, member: Member) -> None:
        member.job = member.inbox.popleft()
        member.begun_at = monotonic()
        member.child.give(member.job)
