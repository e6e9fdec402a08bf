"""Reports the ends of a pool's jobs to the server: DONE in batches, everything else one by one.

A DONE with a run time is a separate command, too, but many of them are sent in one packet.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any

from sockpq._protocol.command import Command
from sockpq._protocol.commands import jobs as job_commands
from sockpq._protocol.commands.batches import BATCH_JOBS_MAX
from sockpq._protocol.job_ids import tag_of
from sockpq._routing.router import Router
from sockpq.errors import JobNotFound, SockpqError
from sockpq.model import Handed
from sockpq.worker.outcome import Outcome
from sockpq.worker.pool.counters import PoolCounters
from sockpq.worker.pool.leases import Leases
from sockpq.worker.pool.outcome_commands import done, end_job, give_back

LOG = logging.getLogger("sockpq.worker")

TELL_S = 0.05           # a DONE waits this long for a GETB to go with
CALL_S = 30.0           # how long nobody may serve before a call gives up, to be tried again
PAUSE_S = 1.0           # after a call that failed
LEAVE_S = 10.0          # how long the last words of a pool may take


class OutcomeSender:
    """Keeps the lease of a job until its outcome has reached the server. `changed` is called after each report.

    `is_timed`: returns whether the run time of a job is reported to the server.
    """

    def __init__(
        self, router: Router, leases: Leases, counters: PoolCounters, changed: Callable[[], None],
        is_timed: Callable[[Handed], bool],
    ) -> None:
        self._router = router
        self._leases = leases
        self._counters = counters
        self._changed = changed
        self._is_timed = is_timed
        self._finished: list[int] = []
        self._timed: list[tuple[int, float]] = []       # the same with their times
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._leaving = False

    # DONE

    def finish(self, job: Handed, run_s: float) -> None:
        """Report DONE, with the run time, together with the next GETB or soon."""
        if self._is_timed(job):
            self._timed.append((job.id, run_s))
        else:
            self._finished.append(job.id)
        self._report_soon(TELL_S)

    def take_finished(self) -> list[int]:
        """Return the jobs whose DONE to send with a GETB now, as many as one command may have, of one cluster."""
        tag = tag_of(self._finished[0]) if self._finished else 0
        now = [job for job in self._finished if tag_of(job) == tag][:BATCH_JOBS_MAX]
        if len(now) == len(self._finished):
            self._finished = []
        else:
            taken = set(now)
            self._finished = [job for job in self._finished if job not in taken]
            self._report_soon(TELL_S)
        return now

    def reported(self, finished: Sequence[int]) -> None:
        """Forget jobs whose DONE the server has executed."""
        for job in finished:
            self._leases.end(job)

    def not_reported(self, finished: list[int]) -> None:
        """Queue finished jobs again whose report may not have arrived; sending it twice is harmless."""
        if finished:
            self._finished = finished + self._finished
            self._report_soon(PAUSE_S)

    def _report_soon(self, seconds: float) -> None:
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(seconds, self._tell)

    def _tell(self) -> None:
        self._timer = None
        if self._finished:
            self.begin(self._tell_these(self.take_finished()))
        if self._timed:
            self.begin(self._tell_times())

    async def tell_times(self) -> None:
        """Send the DONEs that report a time before jobs are requested: the server's choice depends on them."""
        if self._timed:
            await asyncio.shield(self.begin(self._tell_times()))

    async def _tell_times(self) -> None:
        reported, self._timed = self._timed, []
        try:
            answers = await self._router.run_batch(
                [job_commands.done(job, ran=run_s) for job, run_s in reported], timeout=CALL_S
            )
        except SockpqError as error:
            LOG.warning("could not send DONE: %s", error)
            if not self._leaving:
                self._timed = reported + self._timed
                self._report_soon(PAUSE_S)
            return
        self._count_lost([answer.error if answer else None for answer in answers])
        self.reported([job for job, _ in reported])

    async def _tell_these(self, finished: list[int]) -> None:
        try:
            await self._router.run(self.done(finished), timeout=CALL_S)
        except SockpqError as error:
            LOG.warning("could not send DONE: %s", error)
            if not self._leaving:
                self.not_reported(finished)
            return
        self.reported(finished)
        if self._finished:
            self._report_soon(TELL_S)

    def done(self, finished: list[int]) -> Command[list[Any]]:
        """Return the DONE of these jobs; those that were no longer ours are counted when the answer arrives."""
        return done(finished, self._count_lost)

    def _count_lost(self, answers: Sequence[object]) -> None:
        lost = sum(isinstance(answer, JobNotFound) for answer in answers)
        if lost:
            self._counters.lost += lost
            LOG.warning("%d of %d jobs were done when their leases had ended", lost, len(answers))

    # other outcomes

    def end(self, job: Handed, outcome: Outcome) -> None:
        """End a job by anything but a plain DONE: by another outcome, or with a result."""
        self.begin(self._end(job, outcome))

    async def _end(self, job: Handed, outcome: Outcome) -> None:
        """Send the command until the server has executed it, or the lease has ended."""
        timed = self._is_timed(job)
        while True:
            try:
                if not await end_job(self._router, job, outcome, CALL_S, outcome.run_s if timed else None):
                    self.lost(job.id)
                break
            except SockpqError as error:
                LOG.warning("could not send %s: %s", outcome.kind, error, extra={"fields": {"id": job.id}})
                if self._leaving or self._leases.is_doubtful(job.id, monotonic()):
                    break
                await asyncio.sleep(PAUSE_S)
        self._leases.end(job.id)

    async def give_back(self, jobs: Sequence[Handed], counts: bool = False) -> None:
        """Put jobs back in their places; unless their attempts count, as if they had not been taken."""
        commands: list[Command[Any]] = [self.giving_back(job, counts) for job in jobs]
        try:
            await self._router.run_batch(commands, timeout=LEAVE_S)
        except SockpqError as error:
            LOG.warning("jobs cannot be put back, they return when their leases end: %s", error)
        for job in jobs:
            self._leases.end(job.id)

    def giving_back(self, job: Handed, counts: bool = False) -> Command[Any]:
        """Return the command that gives the job back, without charging its group for the time it has waited here."""
        return give_back(job, counts, 0.0 if self._is_timed(job) and not counts else None)

    def lost(self, job: int) -> None:
        """Record that the server has given the job to others."""
        self._leases.end(job)
        self._counters.lost += 1
        LOG.warning("the lease of a job has ended before its work", extra={"fields": {"id": job}})

    # work in progress

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start a task in the background; a pool that ends waits for it (last_words)."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        self._changed()
        if not task.cancelled() and (error := task.exception()):
            LOG.error("a fault of the worker itself", exc_info=error)

    async def last_words(self) -> None:
        """Flush outstanding reports, for at most LEAVE_S."""
        until = monotonic() + LEAVE_S
        if self._timer:
            self._timer.cancel()
        self._leaving = True
        self._tell()
        while self._tasks and (left := until - monotonic()) > 0:
            await asyncio.wait(set(self._tasks), timeout=left)
        if self._timer:
            self._timer.cancel()
        for task in set(self._tasks):
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
