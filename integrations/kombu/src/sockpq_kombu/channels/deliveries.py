"""Deliveries to the consumers of a channel: jobs that a thread has fetched, and messages of local queues."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

from kombu.log import get_logger
from sockpq import Job

from sockpq_kombu.background.acknowledgements import AckAction
from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.background.fetcher import TOGETHER_MAX, Fetcher
from sockpq_kombu.link import Link
from sockpq_kombu.mapping.messages import BadMessage, Raw, unpack
from sockpq_kombu.mapping.queue_order import QueuePolicy

logger = get_logger("kombu.transport.sockpq")

Give = Callable[[Any], None]


class Consumed(NamedTuple):
    """A queue that has a consumer. Each message is given to `hold`, which never blocks, and then to `deliver`."""

    queue: str
    no_ack: bool
    hold: Give          # counts the message as one that the consumer has
    deliver: Give


class Deliveries:
    """Delivers messages to consumers, up to the prefetch limit."""

    def __init__(
        self, link: Link, session_ttl: float, policy: QueuePolicy | None, message: Callable[[Raw], Any],
        room: Callable[[int, int], int | None],
    ) -> None:
        """`session_ttl`: seconds; `policy`: the choice of the next queue; `message`: creates kombu's message.

        `room(undelivered, unacknowledged)` returns how many more messages may be taken, None for any number, given the
        numbers of messages not delivered and of acknowledgements not sent yet.
        """
        self._link = link
        self._session_ttl = session_ttl
        self._policy = policy
        self._message = message
        self._room = room
        self._remote: dict[str, Consumed] = {}      # by the server's name of the queue
        self._local: dict[str, Consumed] = {}
        self._inbox: deque[Job] = deque()
        self._changing = threading.Lock()           # jobs come, are counted and delivered in different threads
        self._fetcher: Fetcher | None = None

    def begin(self, name: str, consumed: Consumed) -> None:
        """Deliver the messages of this queue. `name`: its name on the server."""
        if consumed.queue in self._link.local_queues:
            self._local[consumed.queue] = consumed
            self._link.notify()
            return
        self._remote[name] = consumed
        if self._fetcher is None:
            self._fetcher = Fetcher(
                self._link.client, self._session_ttl, self._policy, self._wanted, self._came, self._link.fail
            )
            self._fetcher.start()
            self._link.watch(self.poll)
        self._fetcher.poll()

    def end(self, name: str, queue: str) -> None:
        """Stop delivering messages of this queue; those already fetched go back.

        Afterwards none is delivered; in an event loop some may still arrive, and go back as well.
        """
        self._local.pop(queue, None)
        with self._changing:
            if self._remote.pop(name, None) is None:
                return
        self.poll()
        if self._fetcher is not None and not must_not_block():
            self._fetcher.withdraw(name)
        with self._changing:
            left = [job for job in self._inbox if job.queue == name]
            self._inbox = deque(job for job in self._inbox if job.queue != name)
        self._put_back(left)

    def poll(self) -> None:
        """Fetch more messages if there is room, or if the queues have changed."""
        fetcher = self._fetcher     # another thread may stop it meanwhile
        if fetcher is not None:
            fetcher.poll()

    def waiting(self) -> int:
        """The number of messages that can be delivered."""
        local = self._link.local_queues
        return len(self._inbox) + sum(len(local[queue].messages) for queue in self._local if queue in local)

    def deliver_told(self) -> bool:
        """Give one message of a local queue to its consumer, in the thread of the program; False when there is none."""
        for queue, consumed in self._local.items():
            local = self._link.local_queues.get(queue)
            if local is not None and local.messages:
                try:
                    message = self._message(local.messages.popleft())
                except BadMessage as error:
                    logger.warning("a message without a job is dropped: %s", error)
                    return True
                consumed.hold(message)
                consumed.deliver(message)
                return True
        return False

    def deliver_one(self) -> bool:
        """Give one message to its consumer, in the thread of the program; False when there is none."""
        if self.deliver_told():
            return True
        while self._inbox:
            job = self._inbox[0]
            consumed = self._remote.get(job.queue)
            message = self._message_in(job, consumed)
            with self._changing:        # so the fetcher counts it at every moment, either here or as held
                if not self._inbox:         # another thread has closed the channel
                    break
                self._inbox.popleft()
                if consumed is None or message is None:
                    continue
                consumed.hold(message)
            if consumed.no_ack:         # others make room when they are acknowledged
                self.poll()
            consumed.deliver(message)
            return True
        return False

    def _message_in(self, job: Job, consumed: Consumed | None) -> Any:
        """Return kombu's message; None if it goes back or is buried instead of being delivered."""
        if consumed is None:            # its consumer ends just now
            self._put_back([job])
            return None
        try:
            message = self._message(message_of(job))
        except BadMessage as error:
            bury_bad(self._link, job, error)
            return None
        if consumed.no_ack:
            self._link.acknowledgements.add(AckAction.DONE, job.id)
        return message

    def stop(self) -> None:
        """Stop fetching; unacknowledged messages go back to their places."""
        fetcher, self._fetcher = self._fetcher, None
        if fetcher is not None:
            self._link.unwatch(self.poll)
            fetcher.stop()
        with self._changing:
            self._inbox.clear()

    def _wanted(self) -> tuple[int, tuple[str, ...]]:
        with self._changing:
            room = self._room(len(self._inbox), self._link.acknowledgements.unsent)
        return TOGETHER_MAX if room is None else room, tuple(self._remote)

    def _came(self, jobs: list[Job]) -> None:
        with self._changing:
            self._inbox.extend(job for job in jobs if job.queue in self._remote)
            self._put_back([job for job in jobs if job.queue not in self._remote])
        self._link.notify()

    def _put_back(self, jobs: list[Job]) -> None:
        if jobs:
            self._link.acknowledgements.add(AckAction.BACK, *(job.id for job in jobs))


def bury_bad(link: Link, job: Job, error: BadMessage) -> None:
    """Bury a message that would crash every program that takes it; operators find it among the dead jobs."""
    logger.error("job %d of queue %s is no message, and is buried: %s", job.id, job.queue, error)
    link.acknowledgements.add(AckAction.BAD, job.id)


def message_of(job: Job) -> Raw:
    """Return the message in a job that was taken with its metadata. Raises BadMessage."""
    return unpack(job.data, str(job.id), job.meta is not None and job.meta.attempt > 1)
