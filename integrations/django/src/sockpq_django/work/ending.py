"""The end of a job's attempt in the cluster: done with its result, put back, or dead with its errors."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from sockpq import Aborted, Busy, Client, CrossCluster, DataTooLarge, Job, JobNotFound, OutcomeUnknown, Unavailable

from sockpq_django.configuration.options import TaskOptions
from sockpq_django.tasks.body import TaskBody
from sockpq_django.tasks.names import results_queue
from sockpq_django.work.attempt import Failed, Outcome, PutBack, Succeeded

LOG = logging.getLogger("sockpq_django")

REPEAT_PAUSE_S = 2.0        # while no server serves
REASON_MAX = 64
LINE_MAX = 200              # characters


class Ending:
    """Ends one job, trying again until that is certain or the job belongs to another worker."""

    def __init__(self, client: Client, job: Job, settings: TaskOptions) -> None:
        self._client = client
        self._job = job
        self._settings = settings

    def conclude(self, body: TaskBody, outcome: Outcome) -> bool:
        """End the job; returns whether it was still ours. Raises DataTooLarge when what a task returned is too long."""
        if isinstance(outcome, Succeeded):
            return self._sure(lambda: self._done(outcome.returned))
        if isinstance(outcome, PutBack):
            return self._sure(lambda: self._job.later(
                delay=outcome.pause or None, yielded=True, slow=outcome.slow, sleep=outcome.sleep
            ))
        return self._sure(lambda: self._failed(body, outcome))

    def give_up(self, reason: str, text: str) -> None:
        """Bury a job that no worker can run."""
        LOG.error("a job of queue %s cannot be run: %s", self._job.queue, text)
        self._sure(lambda: self._job.bury(reason_of(reason), error=f"{reason}: {text}"))

    def put_back_first(self) -> None:
        """Put the job back in its place, as if nobody had taken it."""
        self._sure(lambda: self._job.later(first=True, yielded=True))

    def _done(self, returned: bytes) -> None:
        """End the job with what is kept of it, and record in the queue of results how it is found from now on."""
        number, settings = self._job.number, self._settings
        if not settings.retention or number is None or self._job.key is None:
            self._job.done()
            return
        try:
            with self._client.transaction() as t:
                t.done(self._job, result=returned)
                t.put(
                    results_queue(settings.prefix), str(number), key=self._job.key, on_duplicate="replace",
                    ttl=settings.retention,
                )
        except (Aborted, CrossCluster) as error:
            if isinstance(error, Aborted) and error.position == 1:
                raise error.reason from None
            LOG.error("the result of task %s will not be found: %s", self._job.key, error)
            self._job.done(result=returned)

    def _failed(self, body: TaskBody, outcome: Failed) -> None:
        """Keep the failure with the job, in its body and as its error, and put it back or bury it.

        In a queue that allows no body of this length only the last line of the traceback is kept in it, or nothing.
        """
        failure = outcome.failure
        last_line = failure.traceback.strip().rpartition("\n")[2][:LINE_MAX]
        for kept in (failure, failure._replace(traceback=last_line), None):
            try:
                self._end_failed(outcome, None if kept is None else body.with_failure(kept).encoded())
                return
            except Aborted as aborted:
                if kept is None or not isinstance(aborted.reason, DataTooLarge):
                    raise aborted.reason from None

    def _end_failed(self, outcome: Failed, changed: bytes | None) -> None:
        failure, pause = outcome.failure, outcome.pause
        reason = reason_of(failure.error.rpartition(".")[2])
        with self._client.transaction() as t:
            if changed is not None:
                t.change(self._job, data=changed)
            if pause is None:
                t.bury(self._job, reason, error=failure.traceback)
            else:
                t.later(self._job, delay=pause or None, reason=reason, error=failure.traceback)

    def _sure(self, end: Callable[[], object]) -> bool:
        """Call this until a server has executed it; returns whether the job was still ours.

        After an unknown outcome it is repeated; if the job is not there then, that was very probably our first call.
        """
        unknown = False
        while True:
            try:
                end()
                return True
            except JobNotFound:
                if unknown:
                    return True
                LOG.warning(
                    "job %d of queue %s is not this worker's any more: its lease has ended, or it was cancelled",
                    self._job.id, self._job.queue,
                )
                return False
            except (Unavailable, Busy, OutcomeUnknown) as error:
                unknown = unknown or isinstance(error, OutcomeUnknown)
                LOG.warning("the end of job %d cannot be reported yet: %s", self._job.id, error)
                time.sleep(REPEAT_PAUSE_S)


def reason_of(word: str) -> str:
    """Return a word that the server accepts as the reason of an end."""
    safe = "".join(one if one.isascii() and (one.isalnum() or one in "_.:-") else "_" for one in word)
    return safe[:REASON_MAX] or "Error"
