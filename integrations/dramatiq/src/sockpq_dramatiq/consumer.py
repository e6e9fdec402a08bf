"""Takes the messages of one queue for a worker, which keeps them while its process lives, however long they run."""

from __future__ import annotations

import re
import threading
import traceback
from collections import deque
from collections.abc import Iterable
from contextlib import suppress

from dramatiq import Consumer, Message, MessageProxy
from dramatiq.errors import DecodeError
from dramatiq.logging import get_logger
from sockpq import Client, Job, JobNotFound

from sockpq_dramatiq.cancellation import Cancellations
from sockpq_dramatiq.errors import errors_of_dramatiq
from sockpq_dramatiq.messages import ReceivedMessage
from sockpq_dramatiq.step import Command

logger = get_logger(__name__)

NOT_OF_A_WORD = re.compile(r"[^A-Za-z0-9_.:-]")
REASON_MAX = 64
OF_RETRIES = ("retries", "traceback", "requeue_timestamp")      # options that the middleware Retries leaves


class SockpqConsumer(Consumer):
    """Takes messages, a few at once, and ends them. For use by one thread, but any thread may end messages."""

    def __init__(
        self, client: Client, queue: str, prefetch: int, timeout: float, ttl: float, cancellations: Cancellations,
    ) -> None:
        """`prefetch`: how many messages the worker may have at a time. `timeout`: seconds to wait for one.

        `ttl`: when this process has given no sign of life for this many seconds, its messages go to other workers.
        """
        self._client = client
        self._queue = queue
        self._prefetch = prefetch
        self._timeout = timeout
        self._cancellations = cancellations
        self._taker = client.consumer(ttl)
        self._taken: deque[Job] = deque()       # not given to the worker yet
        self._held = 0                          # taken and not ended
        self._room = threading.Condition()
        self._closing = False

    def __next__(self) -> ReceivedMessage | None:
        """Return the next message, or None when none has come in time. Raises ConnectionClosed."""
        if not self._taken:
            room = self._wait_for_room()
            if not room:
                return None
            with errors_of_dramatiq():
                taken = self._taker.get_many(room, self._queue, wait=self._timeout)
            with self._room:
                self._held += len(taken)
            self._taken.extend(taken)
        while self._taken:
            message = self._received(self._taken.popleft())
            if message is not None:
                return message
        return None

    def ack(self, message: MessageProxy) -> None:
        """Remove the message, or put it back for a retry, together with what it sends. Raises ConnectionClosed."""
        assert isinstance(message, ReceivedMessage)
        if message.cancelled or message.step.acknowledge():
            self._ended(message)
        else:
            self._gone(message)

    def nack(self, message: MessageProxy) -> None:
        """Make the message a dead letter, with its error. Raises ConnectionClosed."""
        assert isinstance(message, ReceivedMessage)
        job, error = message.job, message._exception
        reason = NOT_OF_A_WORD.sub("_", type(error).__name__ if error else "Rejected")[:REASON_MAX]
        text = message.options.get("traceback") or "".join(traceback.format_exception(error)) if error else None
        ending = [Command(lambda to: to.bury(job, reason=reason, error=text))]
        if message.retried_before:      # brought back by KICK, it has all its retries again
            options = {name: value for name, value in message.options.items() if name not in OF_RETRIES}
            fresh = Message(**{**message.asdict(), "options": options}).encode()
            ending.insert(0, Command(lambda to: to.change(job, data=fresh)))
        if message.cancelled or message.step.reject(ending):
            self._ended(message)
        else:
            self._gone(message)

    def requeue(self, messages: Iterable[MessageProxy]) -> None:
        """Put messages that were not begun back in their places, as if they had not been taken."""
        for message in messages:
            assert isinstance(message, ReceivedMessage)
            self._put_back(message.job)
            self._ended(message)

    def close(self) -> None:
        """Put back the messages that the worker has not received yet. Those in work stay its own until they end."""
        while self._taken:
            self._put_back(self._taken.popleft())
            self._leave_room()
        with self._room:
            self._closing = True
            idle = not self._held
        if idle:
            self._taker.close()

    def release(self) -> None:
        """Put back all messages that have not ended, as the process ends."""
        self._taker.close()

    def _wait_for_room(self) -> int:
        with self._room:
            self._room.wait_for(lambda: self._held < self._prefetch, self._timeout)
            return max(self._prefetch - self._held, 0)

    def _received(self, job: Job) -> ReceivedMessage | None:
        """Return the message of a job; a job that has none becomes a dead letter, as it would fail again and again."""
        try:
            message = ReceivedMessage(Message.decode(job.data), self._client, job, self._leave_room)
        except DecodeError as error:
            logger.error("Job %d of queue %r is no message; it is a dead letter now.", job.id, self._queue)
            with errors_of_dramatiq(), suppress(JobNotFound):
                job.bury(reason="DecodeError", error=f"not a message of Dramatiq: {error.error!r}")
            self._leave_room()
            return None
        self._cancellations.taken(message)
        return message

    def _put_back(self, job: Job) -> None:
        with errors_of_dramatiq(), suppress(JobNotFound):
            job.later(first=True, yielded=True)

    def _gone(self, message: ReceivedMessage) -> None:
        logger.warning(
            "Message %s is not this worker's any more: it was cancelled, or has gone to another worker because this "
            "process gave no sign of life. What it would have sent at its end is not sent.", message.message_id,
        )
        self._ended(message)

    def _ended(self, message: ReceivedMessage) -> None:
        message.step.close()
        self._cancellations.ended(message)
        message.leave()         # it may be a message of the consumer before this one

    def _leave_room(self) -> None:
        with self._room:
            self._held -= 1
            last = self._closing and not self._held
            self._room.notify()
        if last:
            self._taker.close()
