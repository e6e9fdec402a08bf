"""Callbacks of groups: the log counts the messages of a group that have ended, each of them once."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from dramatiq import Broker, Message, MessageProxy
from dramatiq.logging import get_logger
from dramatiq.middleware import GroupCallbacks
from dramatiq.rate_limits import RateLimiterBackend
from sockpq import Client, ItemNotFound, Job, JobNotFound, Put
from sockpq.names import escape_key, escape_name

from sockpq_dramatiq.broker import SockpqBroker
from sockpq_dramatiq.errors import errors_of_dramatiq
from sockpq_dramatiq.messages import headers_of
from sockpq_dramatiq.step import Command, Part, collecting

logger = get_logger(__name__)

QUEUE = "dramatiq.groups"
LEASE_S = 60.0          # of a part, from the end of the actor to the acknowledgement of its message


class SockpqGroupCallbacks(GroupCallbacks):
    """Lets groups have completion callbacks, which are sent exactly once, when the last message of the group is done.

    For each message of the group there is a job, all of one item. The acknowledgement of a message ends one of them, in
    the same transaction, and puts the callbacks: jobs that wait for the end of the item. So a message that is delivered
    twice counts once. Callbacks are put as they were given: middleware does not see them before they run.
    """

    def __init__(self, broker: SockpqBroker) -> None:
        """`broker`: the one to which this middleware is added."""
        self._queue = escape_name(QUEUE, broker.prefix)
        super().__init__(_Parts(broker.client, self._queue))

    def after_process_message(
        self, broker: Broker, message: MessageProxy, *, result: Any = None, exception: BaseException | None = None,
    ) -> None:
        """Let the acknowledgement of a message of a group count it."""
        group = message.options.get("group_completion_uuid")
        callbacks = message.options.get("group_completion_callbacks")
        step = collecting()
        if exception is None and group and callbacks and step is not None:
            assert isinstance(broker, SockpqBroker)
            step.add(_Completed(broker, self._queue, group, [Message(**callback) for callback in callbacks]))


class _Parts(RateLimiterBackend):
    """Makes the jobs that stand for the messages of a group, as dramatiq.group asks a barrier for them."""

    def __init__(self, client: Client, queue: str) -> None:
        self._client = client
        self._queue = queue

    def add(self, key: str, value: int, ttl: int) -> bool:
        """Put `value` jobs of the item `key`. They have no `ttl`: a group whose message is dead waits for its retry."""
        with errors_of_dramatiq():
            self._client.put_many(self._queue, jobs=[Put(b"", item=_item(self._queue, key)) for _ in range(value)])
        return True


class _Completed(Part):
    """One message of a group is done."""

    def __init__(self, broker: SockpqBroker, queue: str, group: str, callbacks: Sequence[Message]) -> None:
        super().__init__(data_bytes=sum(len(callback.encode()) for callback in callbacks))
        self._broker = broker
        self._queue = queue
        self._item = _item(queue, group)
        self._callbacks = callbacks
        self._job: Job | None = None

    def commands(self) -> Sequence[Command]:
        """End one job of the group, and put the callbacks unless they wait already. Raises ConnectionClosed."""
        with errors_of_dramatiq():
            if self._job is None:
                self._job = self._take()
        if self._job is None:
            logger.warning("The group %s is not known any more: its callbacks are not sent.", self._item)
            return ()
        done = self._job
        return [
            Command(lambda to: to.done(done)),
            *(self._callback(number, callback) for number, callback in enumerate(self._callbacks)),
        ]

    def lost(self) -> bool:
        """Take another job for the next attempt: the lease has ended."""
        self._job = None
        return True

    def release(self) -> None:
        """Let the message's next worker have the job."""
        job, self._job = self._job, None
        if job is not None:
            with errors_of_dramatiq(), suppress(JobNotFound):
                job.later(first=True)

    def _take(self) -> Job | None:
        """Take one job of the group; None if the group has ended or was cancelled."""
        client = self._broker.client
        job = client.get(self._queue, item=self._item, expire=LEASE_S)
        if job is None:
            with suppress(ItemNotFound):
                client.item_stat(self._item)
                # A message that is delivered twice: its first worker, which did not end it, still has the job.
                job = client.get(self._queue, item=self._item, expire=LEASE_S, wait=LEASE_S + 10)
        return job

    def _callback(self, number: int, callback: Message) -> Command:
        key = escape_key(f"{self._item}.{number}")
        return Command(lambda to: to.put(
            self._broker.name_of(callback.queue_name), callback.encode(), self._broker.priority_of(callback),
            after=self._item, key=key, on_duplicate="ignore", headers=headers_of(callback),
        ))


def _item(queue: str, group: str) -> str:
    """Return the item of a group's jobs; its name begins with the prefix of the broker, as rights may demand."""
    return escape_name(f"{queue}.{group}")
