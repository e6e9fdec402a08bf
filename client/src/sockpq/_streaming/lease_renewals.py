"""Decides which leases to renew and when, and interprets the answers.

The threads and tasks that do it are in `Heartbeat`.
"""

from __future__ import annotations

import math
from typing import Generic, Protocol, TypeVar

from sockpq._protocol.commands import jobs
from sockpq._routing.router import Router
from sockpq.errors import (
    AuthError,
    BadArguments,
    ForbiddenError,
    ForeignCluster,
    JobNotFound,
    NotSupported,
    SockpqError,
)

BEATS_PER_LEASE = 3                 # two may come too late, as through a failover

# Errors that concern all jobs and will not go away: the worker must be notified.
HOPELESS = BadArguments, NotSupported, AuthError, ForbiddenError, ForeignCluster


class Beating(Protocol):
    """A job that is kept alive."""

    id: int
    lost: bool
    _ended: bool


J = TypeVar("J", bound=Beating)


class LeaseRenewals(Generic[J]):
    """The jobs of one loop, and when to renew the lease of each, on the monotonic clock."""

    def __init__(self, router: Router, expire: float, *, uncharged: bool = False) -> None:
        """`expire`: the lease, in seconds; `uncharged`: report no running time, as the job's end reports all."""
        self._router = router
        self._expire = expire
        self._ran = 0.0 if uncharged else None
        self._period = expire / BEATS_PER_LEASE
        self._renewed: dict[int, float] = {}        # when the lease of each began, as far as is known
        self._due: dict[int, tuple[float, J]] = {}
        self.failure: SockpqError | None = None      # what makes heartbeats hopeless

    def begin(self, job: J, now: float) -> None:
        """Keep this job alive; its lease begins now."""
        self._due[job.id] = now + self._period, job
        self._renewed[job.id] = now

    def end(self, job: J) -> None:
        """Stop renewing the lease of this job."""
        self._due.pop(job.id, None)
        self._renewed.pop(job.id, None)

    def is_doubtful(self, job: J, now: float) -> bool:
        """Return whether the lease of this job may have ended because it could not be renewed in time."""
        return now - self._renewed.get(job.id, now) >= self._expire

    def check(self) -> None:
        """Raise the error that makes heartbeats hopeless, if there is one."""
        if self.failure:
            raise self.failure

    def left(self, now: float) -> float | None:
        """Return the seconds until the next renewal; None without jobs."""
        return min((due for due, _ in list(self._due.values())), default=math.inf) - now if self._due else None

    async def beat(self, now: float) -> None:
        """Renew the leases that are due, in one round."""
        due = [job for at, job in list(self._due.values()) if at <= now]
        for job in due:
            self._due[job.id] = now + self._period, job
        held = [job for job in due if not job._ended]
        try:
            answers = await self._router.run_batch(
                [jobs.touch(job.id, ran=self._ran) for job in held], timeout=self._period, each=True,
            )
        except HOPELESS as failure:
            self.failure = failure
            answers = []
        except SockpqError:         # nobody serves just now: the next beat may do
            return
        for job, answer in zip(held, answers, strict=False):
            error = answer.error if answer else None
            if isinstance(error, JobNotFound):
                job.lost = not job._ended       # it may have been ended meanwhile
            elif isinstance(error, HOPELESS):
                self.failure = error
            elif error is None and job.id in self._renewed:
                self._renewed[job.id] = now
        for job in due:
            if self.failure or job.lost or job._ended:
                self.end(job)
