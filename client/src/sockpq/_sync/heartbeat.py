"""Heartbeats: a thread renews the leases of the jobs that are being worked on, every third of a lease."""

from __future__ import annotations

import threading
from time import monotonic

from sockpq._backends.sync import run
from sockpq._routing.router import Router
from sockpq._streaming.lease_renewals import LeaseRenewals
from sockpq._sync.job import Job


class Heartbeat:
    """Renews the leases of the jobs of one loop."""

    def __init__(self, router: Router, expire: float, *, uncharged: bool = False) -> None:
        """`expire`: the lease, in seconds; `uncharged`: see LeaseRenewals."""
        self._beats: LeaseRenewals[Job] = LeaseRenewals(router, expire, uncharged=uncharged)
        self._changed = threading.Condition()
        self._stopped = False
        self._thread: threading.Thread | None = None

    def begin(self, job: Job) -> None:
        """Keep this job alive."""
        with self._changed:
            self._beats.begin(job, monotonic())
            self._changed.notify()
        if self._thread is None:
            self._thread = threading.Thread(target=self._beat, name="sockpq heartbeat", daemon=True)
            self._thread.start()

    def end(self, job: Job) -> None:
        """Stop renewing the lease of this job."""
        with self._changed:
            self._beats.end(job)

    def is_doubtful(self, job: Job) -> bool:
        """Return whether the lease of the job may have ended because it could not be renewed in time."""
        return self._beats.is_doubtful(job, monotonic())

    def is_hopeless(self) -> bool:
        """Return whether check() will raise."""
        return self._beats.failure is not None

    def check(self) -> None:
        """Raise what makes heartbeats hopeless, if that is so. Jobs are ended before: their work is done."""
        self._beats.check()

    def stop(self) -> None:
        """End the thread, which may still be waiting for an answer."""
        with self._changed:
            self._stopped = True
            self._changed.notify()

    def _beat(self) -> None:
        while True:
            with self._changed:
                if self._stopped:
                    return
                left = self._beats.left(monotonic())
                if left is None or left > 0:
                    self._changed.wait(left)
                    continue
            run(self._beats.beat(monotonic()))
