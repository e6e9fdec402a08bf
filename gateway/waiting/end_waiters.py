"""Clients that wait for the end of a job: it is done, cancelled, expired, dead or buried (AWAIT).

Unless the applied state has the job, one operation asks the log: it finds the job by its key, and knows whether it has
ended or does not exist. While the client waits there are no entries: the machine watches the job, and the effects of
the entry that ends it bring the answer to all clients that wait for it. Until then the client waits, even if the job
moves to another queue.

Waiting has no outcome that could be lost, so a client whose AWAIT may have been executed just sends it to another
leader.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping

from sockpqd.cluster.api import Cluster
from sockpqd.core import Await, JobAwaited, JobEnded, Operation, Reply
from sockpqd.gateway.limits import ENDS_TOLD_AT_ONCE
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.waiting.lines import Lines
from sockpqd.gateway.waiting.slots import Outcome
from sockpqd.gateway.waiting.waiting_line import Waiter, WaitingLine


class EndWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """An AWAIT. It does not keep its command while it waits, so ten thousand of them are cheap."""

    question: Await | None                  # what the log is asked, until the job is known
    by_key: bool                            # the job was named by its key
    queue: str | None = None                # where the job was when the wait began; None: not known yet
    job: int = 0                            # its handle in the effects, when that is known
    in_session: int | None = None           # the session of its connection

    @property
    def operation(self) -> Operation:
        assert self.question is not None
        return self.question

    @property
    def refusal(self) -> bytes | None:
        """Return the refusal if its client may no longer learn about the job, otherwise None."""
        return None if self.queue is None else self.client.guard.refusal_to_await(self.queue, by_key=self.by_key)

    @property
    def session(self) -> int | None:
        """The session to keep alive while it waits."""
        return self.in_session

    def unknown(self) -> None:
        """End it like a refused command, as an AWAIT changes nothing."""
        self.refused()


class EndWaiters(WaitingLine[EndWaiter]):
    """All clients of this node that wait for the end of a job."""

    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self._of_jobs: Lines[int] = Lines()
        self._ended: deque[tuple[int, Outcome]] = deque()       # waiters that have yet to hear how it ended, soon
        self._telling = False

    def waiting(self, job: int) -> int:
        """Return how many clients wait for the end of this job."""
        return self._of_jobs.length(job)

    def add(self, waiter: EndWaiter, within_ms: int | None) -> None:
        """Let a client wait, for this long at most. All its commands before this one have been answered."""
        self.arrive(waiter)
        self.limit(waiter, within_ms)
        assert waiter.question is not None
        # Only the log may decide whether there is an answer yet.
        found = None if waiter.timed_out else self.cluster.machine.watch(waiter.question.selector)
        if found is None:
            self.propose(waiter)
        else:
            waiter.job, waiter.queue = found
            self.enqueue_or_end(waiter)

    def settle(self, waiter: EndWaiter, reply: Reply) -> None:
        """Handle the answer of the log: the job's end, or that it has not ended yet."""
        if waiter.outcome is not None:          # its client has gone
            return
        if waiter.queue is None and isinstance(reply, JobAwaited | JobEnded):
            waiter.queue = reply.queue
            if waiter.refusal is not None:      # as if there were no such job
                self.finish(waiter, responses.JOB_NOT_FOUND)
                return
        if not isinstance(reply, JobAwaited):
            self.finish(waiter, reply)
        elif waiter.timed_out:
            self.finish(waiter, responses.WAIT_TIMEOUT)
        else:
            waiter.job = reply.job
            self.enqueue_or_end(waiter)

    def enqueue(self, waiter: EndWaiter) -> None:
        """Put the waiter in the line of its job."""
        super().enqueue(waiter)
        waiter.question = None
        self._of_jobs.add(waiter.job, waiter.number)
        self.cluster.machine.keep_watch(waiter.job)

    def remove(self, waiter: EndWaiter) -> None:
        """Take the waiter out of the line of its job."""
        super().remove(waiter)
        if self._of_jobs.has(waiter.job, waiter.number):        # else it has ended, and nobody watches it
            self._of_jobs.remove(waiter.job, waiter.number)
            if waiter.job not in self._of_jobs:
                self.cluster.machine.unwatch(waiter.job)

    def ended(self, outcomes: Mapping[int, Outcome]) -> None:
        """Answer the clients that wait for these jobs, which an applied entry has ended, a portion of them at once."""
        for job, outcome in outcomes.items():
            self._ended.extend((number, outcome) for number in self._of_jobs.take(job))
        if not self._telling:
            self._tell()

    def _tell(self) -> None:
        """Answer a portion of those who wait for jobs that have ended: all connections may wait for the same one."""
        self._telling = False
        for _ in range(min(ENDS_TOLD_AT_ONCE, len(self._ended))):
            number, outcome = self._ended.popleft()
            waiter = self._queued.get(number)
            if waiter is not None:              # else its client has gone, or its time was up
                super().remove(waiter)
                if not self.finish_if_refused(waiter):
                    self.finish(waiter, outcome)
        if not self._ended:
            return
        self._telling = True
        asyncio.get_running_loop().call_soon(self._tell)

    def stop(self) -> None:
        """Refuse all waiters, as this node no longer serves."""
        super().stop()
        self._ended.clear()
        self.cluster.machine.unwatch_all()
