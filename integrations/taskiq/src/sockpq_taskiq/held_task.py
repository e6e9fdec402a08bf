"""A task that this worker has taken, and the ways in which it ends."""

from __future__ import annotations

import asyncio
import logging
import re
import traceback
from collections.abc import Awaitable, Callable
from contextvars import ContextVar

from sockpq import Aborted, Busy, ClientClosed, JobNotFound, NotServing, OutcomeUnknown, ProtocolError, Unavailable
from sockpq.aio import Client, Job, Transaction

logger = logging.getLogger("sockpq_taskiq")

LOST = (Unavailable, OutcomeUnknown, NotServing, Busy, ProtocolError, OSError)
PAUSE_S = 1.0           # before a cluster that did not answer is asked again
NOT_OF_A_WORD = re.compile(r"[^A-Za-z0-9_.:-]")
REASON_MAX = 64


class HeldTask:
    """A running job with its task. It ends once: later calls change nothing."""

    def __init__(self, client: Client, job: Job, task_id: str | None) -> None:
        """`task_id`: None if the job holds no message of Taskiq."""
        self.job = job
        self.task_id = task_id
        self.ended = False
        self._client = client

    @property
    def attempt(self) -> int:
        """The number of the job's hand-outs, this one included."""
        return self.job.meta.attempt if self.job.meta else 1

    async def ack(self) -> None:
        """Remove the job. One that holds no message of Taskiq becomes a dead letter, as Taskiq would drop it."""
        if self.task_id is None:
            await self._end(lambda: self.job.bury("Undecodable", error="not a message of Taskiq"))
        else:
            await self._end(self.job.done)

    async def give_back(self) -> None:
        """Put the job back in its place, as if it had not been taken."""
        await self._end(lambda: self.job.later(first=True, yielded=True))

    async def postpone(self, delay: float) -> None:
        """Put the job back for `delay` seconds; it does not count as an attempt."""
        await self._end(lambda: self.job.later(delay=delay, yielded=True, reason="UnknownTask"))

    async def retry(self, delay: float, error: BaseException) -> None:
        """Put the job back, to be taken again after `delay` seconds; its error is kept with it."""
        await self._end(lambda: self.job.later(delay=delay, reason=reason_of(error), error=text_of(error)))

    async def bury(self, error: BaseException) -> None:
        """Make the job a dead letter, with its error."""
        await self._end(lambda: self.job.bury(reason_of(error), error=text_of(error)))

    async def replace(self, add: Callable[[Transaction], None]) -> None:
        """End the job by the commands that `add` adds to a transaction, all of them or none."""
        async def commit() -> None:
            async with self._client.transaction() as transaction:
                add(transaction)

        await self._end(commit)

    async def _end(self, call: Callable[[], Awaitable[object]]) -> None:
        """Make the call that ends the job until the cluster has answered. Raises a refusal."""
        while not self.ended:
            try:
                await call()
            except ClientClosed:
                logger.info("Task %s has gone back to its queue, as the broker was closed.", self.task_id)
            except JobNotFound:
                self._gone()
            except Aborted as error:
                if not isinstance(error.reason, JobNotFound):
                    raise
                self._gone()
            except LOST as error:
                logger.warning("The end of task %s could not be sent, it is tried again: %s", self.task_id, error)
                await asyncio.sleep(PAUSE_S)
                continue
            self.ended = True

    def _gone(self) -> None:
        logger.warning(
            "Task %s is not this worker's any more: it was removed, or went to another worker because this one gave no "
            "sign of life.", self.task_id,
        )


def reason_of(error: BaseException) -> str:
    """Return the class of an error as the word that is kept with a job."""
    return NOT_OF_A_WORD.sub("_", type(error).__name__)[:REASON_MAX]


def text_of(error: BaseException) -> str:
    """Return the traceback of an error."""
    return "".join(traceback.format_exception(error))


# The task whose function or middleware runs here.
current: ContextVar[HeldTask | None] = ContextVar("sockpq_taskiq_task", default=None)
