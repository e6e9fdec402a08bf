"""While a job is worked on its lease is made to begin anew every third of it: by a thread, for the blocking client."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any

from sockpq._backends.sync import run
from sockpq.errors import AuthError, BadArguments, ForbiddenError, JobNotFound, NotSupported, SockpqError
from sockpq.job import Job

if TYPE_CHECKING:
    from sockpq.calls import Calls

BEATS_PER_LEASE = 3                 # two may come too late, as through a failover

# Not a matter of this job, and no better the next time: the worker must be told.
HOPELESS = BadArguments, NotSupported, AuthError, ForbiddenError


class Heartbeat:
    """For the jobs of one loop, one after the other."""

    def __init__(self, calls: Calls[Any], expire: float) -> None:
        """`expire`: the lease, in seconds."""
        self._calls = calls
        self._period = expire / BEATS_PER_LEASE
        self._changed = threading.Condition()
        self._job: Job | None = None
        self._next = 0.0                        # when to touch it, on the monotonic clock
        self._stopped = False
        self._failure: SockpqError | None = None
        self._thread: threading.Thread | None = None

    @contextmanager
    def of(self, job: Job) -> Iterator[None]:
        """Keep this job alive in the block."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="sockpq heartbeat", daemon=True)
            self._thread.start()
        with self._changed:
            self._job, self._next = job, monotonic() + self._period
            self._changed.notify()
        try:
            yield
        finally:
            with self._changed:
                self._job = None

    def check(self) -> None:
        """Raise what makes heartbeats hopeless, if that is so. The job is ended before: its work is done."""
        if self._failure:
            raise self._failure

    def stop(self) -> None:
        """End the thread, which may still be waiting for an answer."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _beat(self) -> None:
        with self._changed:
            while not self._stopped:
                job = self._job
                left = self._next - monotonic()
                if job is None or left > 0:
                    self._changed.wait(None if job is None else left)
                    continue
                self._changed.release()
                try:
                    goes_on = self._touch(job)
                finally:
                    self._changed.acquire()
                if self._job is job:
                    self._job, self._next = (job if goes_on else None), monotonic() + self._period

    def _touch(self, job: Job) -> bool:
        """Touch it, unless its holder has ended it; returns whether to go on."""
        try:
            if job._ended:
                return False
            run(self._calls.touch(job.id, timeout=self._period))
        except JobNotFound:
            job.lost = not job._ended       # it may have been ended meanwhile
            return False
        except HOPELESS as failure:
            self._failure = failure
            return False
        except SockpqError:                 # nobody serves just now: the next beat may do
            pass
        return True
