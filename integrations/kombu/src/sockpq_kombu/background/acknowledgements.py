"""Tells the server what became of jobs, behind the back of the program: collected, and in order."""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum
from functools import partial

from kombu.log import get_logger
from sockpq import Client, JobNotFound, SockpqError

from sockpq_kombu.background.outbox import Outbox, Send

logger = get_logger("kombu.transport.sockpq")


class Fate(Enum):
    """What is to become of a job."""

    DONE = "done"
    BACK = "back"
    REJECTED = "rejected"       # among the dead jobs of its queue
    BAD = "BadMessage"          # there as well: it can never be worked on


class Acknowledgements:
    """The jobs of one connection that were finished, or put back. Any thread may add to them."""

    def __init__(self, client: Client, outbox: Outbox, told: Callable[[], None]) -> None:
        """`told`: called in the thread of the outbox when there are fewer that the server does not know."""
        self.untold = 0
        self.untold_others_see = 0          # of these, what others may take then, or find among the dead
        self._counting = threading.Lock()
        self._told = told
        self._client = client
        self._outbox = outbox
        self._send: dict[Fate, Send] = {fate: partial(self._tell, fate) for fate in Fate}

    def add(self, fate: Fate, *jobs: int) -> None:
        """Tell this soon."""
        self._count(fate, len(jobs))
        self._outbox.add(self._send[fate], *jobs)

    def _count(self, fate: Fate, more: int) -> None:
        with self._counting:
            self.untold += more
            if fate is not Fate.DONE:
                self.untold_others_see += more

    def _tell(self, fate: Fate, jobs: list[int]) -> None:
        try:
            self._say(fate, jobs)
        finally:
            self._count(fate, -len(jobs))
            self._told()

    def _say(self, fate: Fate, jobs: list[int]) -> None:
        try:
            if fate is Fate.DONE:
                found = [one is not None for one in self._client.done_many(jobs)]
            elif fate is Fate.BACK:
                found = self._client.later_many(jobs, first=True)
            else:
                found = [self._bury(job, fate.value) for job in jobs]
        except SockpqError as error:
            logger.warning("%d acknowledgements failed, the messages will come again: %s", len(jobs), error)
            return
        lost = [job for job, there in zip(jobs, found, strict=True) if not there]
        if lost:
            logger.warning("acknowledged too late, others have these messages by now: %s", lost)

    def _bury(self, job: int, reason: str) -> bool:
        try:
            self._client.bury(job, reason)
        except JobNotFound:
            return False
        return True
