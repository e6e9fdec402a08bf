"""The leases of running jobs, by deadline.

Deadlines are kept in buckets of 16 ms, and a bucket is due when all of it has passed: a lease never ends early, and at
most 16 ms late. A job that is done leaves its bucket at once, so a long EXPIRE leaves nothing behind.

A bucket that is due gets no new jobs (the clock never goes back, and a lease ends after it was granted), except those
that an undone batch brings back; so sorting it once is nearly always enough, however many entries it takes to empty it.
"""

from __future__ import annotations

from sortedcontainers import SortedList

from sockpqd.core.limits import LEASE_BITS
from sockpqd.core.store.job import RunningJob

_Bucket = dict[int, RunningJob]     # by id


def _place(job: RunningJob) -> tuple[int, int]:
    assert job.deadline_ms is not None
    return (job.deadline_ms, job.id)


class Leases:
    """The running jobs that have a deadline."""

    __slots__ = ("_buckets", "_numbers", "_sorted")

    def __init__(self) -> None:
        self._buckets: dict[int, _Bucket] = {}
        self._numbers: SortedList = SortedList()    # the keys of the buckets
        self._sorted: int | None = None             # the bucket that is being emptied, the last job first

    def add(self, job: RunningJob) -> None:
        """Add a running job that has a deadline."""
        assert job.deadline_ms is not None
        number = job.deadline_ms >> LEASE_BITS
        bucket = self._buckets.get(number)
        if bucket is None:
            bucket = self._buckets[number] = {}
            self._numbers.add(number)
        elif number == self._sorted:
            self._sorted = None
        bucket[job.id] = job

    def remove(self, job: RunningJob) -> None:
        """Remove `job`, which no longer runs, or has another deadline."""
        assert job.deadline_ms is not None
        number = job.deadline_ms >> LEASE_BITS
        bucket = self._buckets[number]
        del bucket[job.id]
        if not bucket:
            self._drop(number)

    def next_due_ms(self) -> int | None:
        """Return the time from which `first_due` will return a job; None if there is no lease."""
        return (self._numbers[0] + 1) << LEASE_BITS if self._buckets else None

    def first_due(self, clock_ms: int) -> RunningJob | None:
        """Return the first job in the order of (deadline, id), if its lease has expired at `clock_ms`."""
        if not self._buckets or self._numbers[0] >= clock_ms >> LEASE_BITS:
            return None
        number = self._numbers[0]
        bucket = self._buckets[number]
        if self._sorted != number:
            bucket = {job.id: job for job in sorted(bucket.values(), key=_place, reverse=True)}
            self._buckets[number] = bucket
            self._sorted = number
        key, job = bucket.popitem()     # unlike any other look at the end, never walks over removed entries
        bucket[key] = job
        return job

    def extend(self, from_ms: int, grace_ms: int, *, by_length: bool = False, once: bool = True) -> None:
        """Extend leases that end before `from_ms` + `grace_ms` to that time; `once`: per hand-out.

        `by_length`: for a lease shorter than `grace_ms` its length is used instead (spec/state-machine 3.3).
        """
        extended: dict[int, _Bucket] = {}
        for number in list(self._numbers.irange(None, (from_ms + grace_ms) >> LEASE_BITS)):
            stay: _Bucket = {}
            for job in self._buckets[number].values():      # may be many: as little as possible for each
                lease_ms = grace_ms
                if by_length and job.lease_ms is not None and job.lease_ms < grace_ms:
                    lease_ms = job.lease_ms
                until_ms = from_ms + lease_ms
                if (once and job.graced) or (job.deadline_ms or 0) >= until_ms:
                    stay[job.id] = job
                else:
                    job.deadline_ms = until_ms
                    job.graced = job.graced or once
                    extended.setdefault(until_ms >> LEASE_BITS, {})[job.id] = job
            if len(stay) == len(self._buckets[number]):
                continue
            self._sorted = None
            if stay:
                self._buckets[number] = stay
            else:
                self._drop(number)
        for number, bucket in extended.items():
            if number not in self._buckets:
                self._buckets[number] = {}
                self._numbers.add(number)
            self._buckets[number].update(bucket)

    def postpone(self, by_ms: int) -> None:
        """Let all leases end this much later."""
        buckets: dict[int, _Bucket] = {}
        for bucket in self._buckets.values():
            for job in bucket.values():
                assert job.deadline_ms is not None
                job.deadline_ms += by_ms
                buckets.setdefault(job.deadline_ms >> LEASE_BITS, {})[job.id] = job
        self._buckets, self._numbers, self._sorted = buckets, SortedList(buckets), None

    def _drop(self, number: int) -> None:
        del self._buckets[number]
        self._numbers.remove(number)
