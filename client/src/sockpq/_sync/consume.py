"""The loop of a worker: takes, processes and finishes jobs one after another, with one round trip for each."""

# Made from _async/consume.py by client/tools/faces.py: edit there.

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import groupby
from time import monotonic, thread_time
from typing import Any

from sockpq._backends.stopwatch import stopwatch
from sockpq._backends.sync import run
from sockpq._process import check_own, is_inherited
from sockpq._protocol import arguments
from sockpq._protocol.arguments import Then
from sockpq._protocol.command import Command
from sockpq._protocol.commands import batches, jobs, queues
from sockpq._protocol.job_ids import tag_of
from sockpq._routing.router import Router
from sockpq._sync.heartbeat import Heartbeat
from sockpq._sync.job import Job
from sockpq.errors import JobNotFound, NotExecuted, SockpqError
from sockpq.model import Handed

CLOCKS = {"wall": monotonic, "cpu": thread_time}
LEASE_S = 60.0      # where neither the caller nor the queue says how long; it is renewed then
THENS: dict[str, Then] = {"LATER": "later", "DONE": "done", "DEAD": "dead"}
LOG = logging.getLogger("sockpq")
TELL_S = 0.1        # a loop that comes back this long after the last DONEs sends the next one at once


class Consumption:
    """The jobs of one loop: the current one, the prefetched ones and the finished ones.

    The DONE of finished jobs and the next GETB go in one packet. With `prefetch` several jobs are taken at once, and
    more only when all are finished, as a round trip for fewer would take as long. The DONE of a short job waits for
    others.
    """

    def __init__(
        self,
        router: Router,
        taking: batches.TakeSource,
        timeout: float | None,
        heartbeat: bool,
        prefetch: int,
        ran: str = "wall",
        finds_lease: bool = False,
    ) -> None:
        """`heartbeat`: also for the current job; `prefetch`: how many jobs to hold; `ran`: the kind of time to charge.

        `finds_lease`: the queue's own lease takes precedence over the lease of `taking`, which is always renewed.
        """
        self._router = router
        self._process = os.getpid()
        self._timeout = timeout
        self._prefetch = prefetch
        self._measures = taking.policy == "fair"        # DONE tells how long the work took
        self._clock = CLOCKS[arguments.ran_clock(ran)]
        self._finds_lease = finds_lease
        self._heartbeat = heartbeat
        self._set_lease(taking, heartbeat or finds_lease)
        self._current: Job | None = None
        self._work: tuple[Any, Any] | None = None       # the span of the job that is worked on
        self._waiting: deque[Job] = deque()
        self._finished: list[Job] = []
        self._stopwatch = stopwatch(self._clock)        # of the work on the current job
        self._told_at = 0.0             # when DONEs were sent last, on the monotonic clock

    def next(self) -> Job | None:
        """Return the next job, finishing the one before. None when the loop ends. Raises Inherited."""
        check_own(self._process, "this loop")
        if self._finds_lease:
            self._finds_lease = False
            self._find_lease()
        self._finish_current()
        if self._beat and self._beat.is_hopeless():
            self.leave(None)
            self._beat.check()
        if not self._waiting or self._is_time():
            self._turn_over()
        while self._waiting:
            job = self._waiting.popleft()
            if self._beat and self._beat.is_doubtful(job):      # another worker may have it
                with suppress(JobNotFound):
                    job.touch(ran=self._unworked, timeout=self._timeout)
            if self._beat and not self._keeps_current:
                self._beat.end(job)
            if not job.lost:
                self._current = job
                self._stopwatch = stopwatch(self._clock)
                if self._measures:
                    job._stopwatch = self._stopwatch
                if self._router.tracing:
                    self._work = self._router.tracing.begin_work(job.queue, job._headers)
                return job
            if not self._waiting:
                self._turn_over()
        return None

    def leave(self, error: BaseException | None) -> None:
        """Leave the loop: finished jobs are DONE, all others go back to their places or their queues.

        In a forked child nothing happens: the parent continues with its jobs.
        """
        if is_inherited(self._process):
            return
        current, self._current = self._current, None
        self._end_work(error)
        waiting, self._waiting = list(self._waiting), deque()
        finished, self._finished = self._finished, []
        if self._beat:
            self._beat.stop()
        if self._measures:
            ends: list[Command[Any]] = [jobs.done(job, ran=job._ran) for job in finished]
        else:
            ends = [part.command for part in batches.ends("DONE", finished)]
        ran = self._stopwatch() if self._measures else None
        ends += [jobs.later(current, ran=ran)] if current and not current._ended else []
        ends += [jobs.later(job, first=True, ran=self._unworked) for job in waiting if not job.lost]
        for job in (*finished, *([current] if current else []), *waiting):
            job._ended = True
        try:
            if ends:
                run(self._router.run_batch(ends, timeout=self._timeout))
        except SockpqError as failure:
            if error is None:
                raise
            error.add_note(f"and the job could not be put back: {failure}")

    def _set_lease(self, taking: batches.TakeSource, heartbeat: bool) -> None:
        self._taking = taking
        self._single = taking.one()
        self._keeps_current = heartbeat
        self._beat: Heartbeat | None = None
        if heartbeat or self._prefetch > 1:
            self._beat = Heartbeat(self._router, taking.expire, uncharged=self._measures)

    def _find_lease(self) -> None:
        """Use the lease of the queue, if one queue is named and has a lease that this user may see."""
        names = (self._taking.queues,) if isinstance(self._taking.queues, str) else self._taking.queues or ()
        if len(names) == 1:
            try:
                settings = run(self._router.run_steps(queues.queue_config(names[0], {}), timeout=self._timeout))
            except NotExecuted:     # the queue has no settings, or this user no right to look, or the server has none
                settings = {}
            expire, _, then = settings.get("expire", "0").partition(" THEN ")
            if int(expire):
                LOG.info("consume() without expire: jobs have the lease of queue %s, %s s", names[0], expire)
                taking = self._taking._replace(
                    expire=float(expire), then=self._taking.then or THENS.get(then),
                )
                self._set_lease(taking, self._heartbeat)
                return
        LOG.info("consume() without expire: jobs have leases of %g s, which are renewed", self._taking.expire)

    def _end_work(self, error: BaseException | None = None) -> None:
        work, self._work = self._work, None
        if work and self._router.tracing:
            self._router.tracing.end_work(work, error)

    def _finish_current(self) -> None:
        job, self._current = self._current, None
        if job is None:
            return
        self._end_work()
        if job._ended:
            if self._beat:
                self._beat.end(job)
            return
        if self._measures:
            job._ran = self._stopwatch()
        self._finished.append(job)
        if self._beat and self._prefetch > 1 and not self._keeps_current:
            self._beat.begin(job)

    def _is_time(self) -> bool:
        """Return whether finished jobs have waited long enough to be reported before the others."""
        return bool(self._finished) and monotonic() - self._told_at >= TELL_S

    def _turn_over(self) -> None:
        """Finish the current job, report finished jobs, and take more."""
        finished, self._finished = self._finished, []
        done: Command[Any] | None = None
        if finished:
            done = self._done(finished)
        for job in finished:
            job._ended = True
            if self._beat:
                self._beat.end(job)
        blocks = not self._waiting
        if self._prefetch > 1:
            taken = self._take_many(done, blocks)
        else:
            one = run(self._router.run_behind(
                done, self._single, self._put_back_one, timeout=self._timeout, wait=self._taking.wait
            ))
            taken = [one] if one else []
        self._told_at = monotonic()
        for handed in taken:
            job = Job(self._router, handed)
            self._waiting.append(job)
            if self._beat:
                self._beat.begin(job)

    def _done(self, finished: list[Job]) -> Command[Any]:
        """Return the DONE of these jobs; with fair shares each reports its time, so all but the last are sent here.

        DONEs for other clusters than the last job's are sent here, too.
        """
        if self._measures:
            ends: list[Command[Any]] = [jobs.done(job, ran=job._ran) for job in finished]
        else:
            finished.sort(key=lambda job: tag_of(job.id))
            several = [list(of_one) for _, of_one in groupby(finished, key=lambda job: tag_of(job.id))]
            ends = [jobs.done(some[0]) if len(some) == 1 else batches.done_all(some) for some in several]
        if len(ends) > 1:
            run(self._router.run_batch(ends[:-1], timeout=self._timeout))
        return ends[-1]

    def _take_many(self, done: Command[Any] | None, blocks: bool) -> Sequence[Handed]:
        command = self._taking.many(self._prefetch - len(self._waiting), blocks)
        return run(self._router.run_behind(
            done, command, self._put_back_many, timeout=self._timeout, wait=self._taking.wait if blocks else None
        )) or ()

    @property
    def _unworked(self) -> float | None:
        """The run time reported for a job that was never started."""
        return 0.0 if self._measures else None

    def _put_back_one(self, handed: Handed | None) -> list[Command[Any]]:
        return self._put_back_many([handed] if handed else [])

    def _put_back_many(self, handed: Sequence[Handed]) -> list[Command[Any]]:
        return [jobs.later(job, first=True, ran=self._unworked) for job in handed]


def consume(loop: Consumption) -> Iterator[Job]:
    """Iterate over the jobs of a loop."""
    try:
        while job := loop.next():
            yield job
    except BaseException as error:      # GeneratorExit as well: the loop was left
        loop.leave(error)
        raise
    loop.leave(None)
