"""Decides which leases the pool must renew, and when. No IO; the time is given, a monotonic clock."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

RENEWALS_PER_LEASE = 3          # two may come too late, as through a failover


@dataclass
class Lease:
    """The lease of a job. `length`: its length on the server; `wanted`: what it should be; both in seconds.

    `uncharged`: its renewals charge its group nothing, as all of its time is reported at its end.
    """

    length: float
    wanted: float
    renewed_at: float
    due_at: float
    uncharged: bool = False


class Due(NamedTuple):
    """A renewal: the job, the new length of its lease if that changes, and the time charged to its group."""

    job: int
    expire: float | None
    ran: float | None


class Leases:
    """The leases of all jobs that a pool holds, by the jobs' ids."""

    def __init__(self) -> None:
        self._leases: dict[int, Lease] = {}

    def begin(self, job: int, taken_for: float, wanted: float, now: float, uncharged: bool = False) -> None:
        """Keep the lease of a job taken for `taken_for` seconds, and set one of `wanted` at once if it differs."""
        due = now + (taken_for / RENEWALS_PER_LEASE if taken_for == wanted else 0)
        self._leases[job] = Lease(taken_for, wanted, now, due, uncharged)

    def end(self, job: int) -> None:
        """Stop renewing the lease of this job."""
        self._leases.pop(job, None)

    def take_due(self, now: float) -> list[Due]:
        """Return the leases to renew now.

        Each is due again after a third of its lease, whether or not the renewal succeeds.
        """
        due = []
        for job, lease in self._leases.items():
            if lease.due_at <= now:
                lease.due_at = now + min(lease.length, lease.wanted) / RENEWALS_PER_LEASE
                expire = None if lease.length == lease.wanted else lease.wanted
                due.append(Due(job, expire, 0.0 if lease.uncharged else None))
        return due

    def renewed(self, job: int, now: float) -> None:
        """Record that the server has renewed the lease, not earlier than `now`."""
        lease = self._leases.get(job)
        if lease:
            lease.length, lease.renewed_at = lease.wanted, now

    def is_doubtful(self, job: int, now: float) -> bool:
        """Return whether the lease may have ended because it could not be renewed in time."""
        return now >= self.safe_until(job)

    def safe_until(self, job: int) -> float:
        """Return the time until which the lease has certainly not ended; infinite for a job without one."""
        lease = self._leases.get(job)
        return lease.renewed_at + lease.length if lease else math.inf

    def next_due(self) -> float | None:
        """Return the time at which the next lease must be renewed; None without any."""
        return min((lease.due_at for lease in self._leases.values()), default=None)

    def __len__(self) -> int:
        return len(self._leases)
