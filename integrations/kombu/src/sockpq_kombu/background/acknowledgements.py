"""Reports the ends of jobs to the server in the background, in batches and in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from functools import partial

from kombu.log import get_logger
from sockpq import Client, JobNotFound, SockpqError

from sockpq_kombu.background.outbox import Outbox, Send

logger = get_logger("kombu.transport.sockpq")


class AckAction(Enum):
    """The way in which a job is acknowledged."""

    DONE = "done"
    BACK = "back"
    REJECTED = "rejected"       # among the dead jobs of its queue
    BAD = "BadMessage"          # there as well: it can never be worked on


class Acknowledgements:
    """The acknowledgements of one connection. Any thread may add to them."""

    def __init__(self, client: Client, outbox: Outbox, sent: Callable[[], None]) -> None:
        """`sent`: called in the thread of the outbox when some acknowledgements have been sent."""
        self.unsent = 0
        self.unsent_visible = 0          # of these, what others may take then, or find among the dead
        self._counting = threading.Lock()
        self._sent = sent
        self._client = client
        self._outbox = outbox
        self._send: dict[AckAction, Send] = {action: partial(self._tell, action) for action in AckAction}

    def add(self, action: AckAction, *jobs: int) -> None:
        self._count(action, len(jobs))
        self._outbox.add(self._send[action], *jobs)

    def _count(self, action: AckAction, more: int) -> None:
        with self._counting:
            self.unsent += more
            if action is not AckAction.DONE:
                self.unsent_visible += more

    def _tell(self, action: AckAction, jobs: list[int]) -> None:
        try:
            self._say(action, jobs)
        finally:
            self._count(action, -len(jobs))
            self._sent()

    def _say(self, action: AckAction, jobs: list[int]) -> None:
        try:
            if action is AckAction.DONE:
                found = [one is not None for one in self._client.done_many(jobs)]
            elif action is AckAction.BACK:
                found = self._client.later_many(jobs, first=True)
            else:
                found = [self._bury(job, action.value) for job in jobs]
        except SockpqError as error:
            logger.warning("%d acknowledgements failed, the messages will come again: %s", len(jobs), error)
            return
        lost = [job for job, there in zip(jobs, found, strict=True) if not there]
        if lost:
            logger.warning("acknowledged after their leases expired, these messages are delivered again: %s", lost)

    def _bury(self, job: int, reason: str) -> bool:
        try:
            self._client.bury(job, reason)
        except JobNotFound:
            return False
        return True
