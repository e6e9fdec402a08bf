"""Clients that wait for the end of a job: it is done, cancelled, expired, dead or buried (AWAIT).

Unless the applied state has the job and nothing before the command can change that, the log is asked once: it knows
the job that has a key, whether the job has ended already, and that there is none. While the client waits there is no
entry. The effects of the one that ends the job bring the answer, for all who wait for that job; where they say nothing
of a job the client waits on, also when it goes to another queue.

Waiting has no outcome that could be lost, so a client whose question may have been executed just asks another leader.
"""

from __future__ import annotations

from collections.abc import Callable

from sockpqd.cluster.api import Cluster
from sockpqd.core import Operation, Reply
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.rights import Rights
from sockpqd.gateway.waiting.lines import Lines
from sockpqd.gateway.waiting.slots import Outcome
from sockpqd.gateway.waiting.waiting_line import Waiter, WaitingLine


class EndWaiter(Waiter, gc=False, eq=False, kw_only=True):
    """An AWAIT. It keeps nothing of its command while it waits, so ten thousand of them are cheap."""

    question: Operation | None              # what the log is asked, until the job is known
    right: Callable[[Rights], bytes | None]     # refuses a user who may not hear of this job any more
    job: int = 0                            # the one it waits for, when that is known
    in_session: int | None = None           # the session of its connection

    @property
    def operation(self) -> Operation:
        assert self.question is not None
        return self.question

    @property
    def refusal(self) -> bytes | None:
        """Return the answer if its client may not hear of the job any more, else None."""
        return self.client.guard.refusal_meanwhile(self.right)

    @property
    def session(self) -> int | None:
        """The session that must not end while it waits."""
        return self.in_session

    def unknown(self) -> None:
        """End it like a command that was refused: the question changes nothing."""
        self.refused()


class EndWaiters(WaitingLine[EndWaiter]):
    """All clients of this node that wait for the end of a job."""

    def __init__(self, cluster: Cluster, read: Callable[[Reply], int | Outcome]) -> None:
        """`read`: makes of the reply to a question the number of an unfinished job, or the answer."""
        super().__init__(cluster)
        self._read = read
        self._of_jobs: Lines[int] = Lines()

    def waiting(self, job: int) -> int:
        """Return how many clients wait for the end of this job."""
        return self._of_jobs.length(job)

    def add(self, waiter: EndWaiter, within_ms: int | None, job: int | None = None) -> None:
        """Let a client wait, for this long at most.

        `job`: the unfinished job, if the applied state has it and no command in flight comes before this one.
        """
        self.arrive(waiter)
        self.limit(waiter, within_ms)
        if job is None or waiter.timed_out:     # only the log may say that there is no answer yet
            self.propose(waiter)
        else:
            waiter.job = job
            self.enqueue_or_end(waiter)

    def settle(self, waiter: EndWaiter, reply: Reply) -> None:
        """Handle the answer of the log: the end of the job, or that it has not come yet."""
        if waiter.outcome is not None:          # its client has gone
            return
        found = self._read(reply)
        if not isinstance(found, int):
            self.finish(waiter, found)
        elif waiter.timed_out:
            self.finish(waiter, responses.WAIT_TIMEOUT)
        else:
            waiter.job = found
            self.enqueue_or_end(waiter)

    def enqueue(self, waiter: EndWaiter) -> None:
        """Put the waiter in the line of its job."""
        super().enqueue(waiter)
        waiter.question = None
        self._of_jobs.add(waiter.job, waiter.number)

    def remove(self, waiter: EndWaiter) -> None:
        """Take the waiter out of the line of its job."""
        super().remove(waiter)
        self._of_jobs.remove(waiter.job, waiter.number)

    def ended(self, job: int, outcome: Outcome) -> None:
        """Give all who wait for this job their answer: an applied entry has ended it."""
        for number in self._of_jobs.take(job):
            waiter = self._queued[number]
            super().remove(waiter)
            if not self.finish_if_refused(waiter):
                self.finish(waiter, outcome)

    def all_ended(self, outcome: Outcome) -> None:
        """Give everybody this answer: the state was replaced (CLONE)."""
        for job in list(self._of_jobs):
            self.ended(job, outcome)
