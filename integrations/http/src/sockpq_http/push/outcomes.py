"""Reports the ends of jobs to the cluster until it has executed them: plain DONEs together, others one by one."""

from __future__ import annotations

import asyncio
import logging

from sockpq import DataTooLarge, JobNotFound, SockpqError
from sockpq.aio import Client, Job

from sockpq_http.push.answers import Verdict

LOG = logging.getLogger("sockpq-http")

TOGETHER_MAX = 1000         # jobs in one DONE
CALL_S = 30.0               # how long a call looks for a server, before it is repeated
PAUSE_S = 1.0               # after a call that failed
FIRST_DELAY_S, DELAY_S_MAX = 1.0, 60.0      # of a job that failed, where its queue has no BACKOFF


def own_delay_s(attempt: int) -> float:
    """Return the delay after a failed attempt where the queue has no BACKOFF: a job must not come back at once."""
    return min(FIRST_DELAY_S * 2.0 ** min(attempt - 1, 10), DELAY_S_MAX)


class Outcomes:
    """Sends the outcomes of jobs. A job stays bound to the session of its consumer until its outcome is executed."""

    def __init__(self, client: Client) -> None:
        self.lost = 0                               # jobs that others had by then: their session had ended
        self._client = client
        self._finished: list[Job] = []
        self._sending: asyncio.Task[None] | None = None
        self._leaving = False

    @property
    def unreported(self) -> int:
        """The number of jobs whose DONE the cluster has not confirmed yet."""
        return len(self._finished)

    def finish(self, job: Job) -> None:
        """Report DONE, together with other jobs that are finished while an earlier DONE is in flight."""
        self._finished.append(job)
        if self._sending is None:
            self._sending = asyncio.create_task(self._send_finished())

    async def end(self, job: Job, verdict: Verdict, *, has_backoff: bool) -> None:
        """Report any other outcome; returns when it is executed, or the job is no longer ours.

        `has_backoff`: the queue decides when a job that failed comes back.
        """
        again = False
        while True:
            try:
                await _send(job, verdict, has_backoff)
                return
            except JobNotFound:
                self._count_lost(0 if again else 1)     # a repetition does not find what was executed
                return
            except DataTooLarge:
                LOG.warning("an answer is longer than the queue's MAXDATA, and is not kept as the result")
                verdict = verdict._replace(result=None)
            except SockpqError as error:
                LOG.warning("could not send %s, repeating it: %s", verdict.kind.upper(), error)
                again = True
                await asyncio.sleep(PAUSE_S)

    async def flush(self, seconds: float) -> None:
        """Wait until everything is reported, for this long at most; the others go back with their session."""
        self._leaving = True
        if (sending := self._sending) is not None:
            await asyncio.wait([sending], timeout=seconds)
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)

    async def _send_finished(self) -> None:
        """Send DONE for all jobs that have been finished by now, as long as there are any."""
        again = False
        try:
            while self._finished:
                jobs = self._finished[:TOGETHER_MAX]
                try:
                    ends = await self._client.done_many(jobs, timeout=CALL_S)
                except SockpqError as error:
                    LOG.warning("could not send DONE%s: %s", "" if self._leaving else ", repeating it", error)
                    if self._leaving:
                        return
                    again = True                # some may be executed already, and a repetition does not find them
                    await asyncio.sleep(PAUSE_S)
                    continue
                del self._finished[:len(jobs)]
                if not again:
                    self._count_lost(ends.count(None))
                again = False
        finally:
            self._sending = None

    def _count_lost(self, count: int) -> None:
        if count:
            self.lost += count
            LOG.warning("%d of the jobs sent had gone back to their queues meanwhile: they are sent again", count)


async def _send(job: Job, verdict: Verdict, has_backoff: bool) -> None:
    rest_s = verdict.rest_s or None
    match verdict.kind:
        case "done":
            await job.done(result=verdict.result, timeout=CALL_S)
        case "bury":
            await job.bury(verdict.reason, error=verdict.error, timeout=CALL_S)
        case "unsent":
            await job.later(first=rest_s is None, yielded=True, delay=rest_s, timeout=CALL_S)
        case "later":
            delay_s = rest_s or (None if has_backoff else own_delay_s(job.attempt))
            await job.later(
                delay=delay_s, sleep=rest_s, slow=verdict.slow, reason=verdict.reason, error=verdict.error,
                timeout=CALL_S,
            )
