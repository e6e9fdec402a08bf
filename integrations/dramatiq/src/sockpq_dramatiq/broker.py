"""The broker: sends messages, and gives them to workers."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakSet

from dramatiq import Broker, Message, Middleware
from dramatiq.errors import ActorNotFound, QueueJoinTimeout, QueueNotFound
from dramatiq.middleware import SkipMessage
from dramatiq.results import Results
from sockpq import Client, EventsLost, JobNotFound, Number
from sockpq import QueueNotFound as NoSuchQueue
from sockpq.names import escape_name

from sockpq_dramatiq.cancellation import Cancellations
from sockpq_dramatiq.consumer import NOT_OF_A_WORD, REASON_MAX, SockpqConsumer
from sockpq_dramatiq.errors import errors_of_dramatiq
from sockpq_dramatiq.messages import ReceivedMessage, SentMessage, headers_of
from sockpq_dramatiq.results import SockpqResults
from sockpq_dramatiq.step import Command, Part, collecting, execute

TTL_S = 30.0


class SockpqBroker(Broker):
    """A broker whose messages are jobs of a sockpqd cluster."""

    def __init__(
        self, servers: str | Iterable[str] | None = None, *, middleware: list[Middleware] | None = None,
        client: Client | None = None, prefix: str = "", ttl: float = TTL_S, results: SockpqResults | None = None,
        **options: Any,
    ) -> None:
        """`servers` and `options` are those of sockpq.Client: addresses, `tls`, `user`, `secret_file` and others.

        `client`: one to share with the rest of the program, instead of these. `prefix`: before the names of all queues.
        `ttl`: when a worker has given no sign of life for this many seconds, its messages go to others. `results`: adds
        the middleware Results with this backend.
        """
        super().__init__(middleware=middleware)
        self.queues: set[str] = set()
        self.actor_options |= {"atomic", "broker_priority"}
        self.prefix = prefix
        self.client = Client(servers, **options) if client is None else client
        self._owns_client = client is None
        self._ttl = ttl
        self._consumers: WeakSet[SockpqConsumer] = WeakSet()
        self._cancellations = Cancellations(self.client, f"{prefix}*" if prefix else None)
        if results is not None:
            results.attach(self.client, prefix)
            self.add_middleware(Results(backend=results, result_ttl=int(results.ttl * 1000)))

    def name_of(self, queue_name: str) -> str:
        """Return the name of a queue in the cluster."""
        return escape_name(queue_name, self.prefix)

    def priority_of(self, message: Message) -> int:
        """Return the priority of a message in its queue, greater first: `broker_priority`, else the actor's.

        Dramatiq's own `priority` of actors puts smaller numbers first.
        """
        actor = self.actors.get(message.actor_name)
        given = message.options.get("broker_priority")
        if given is None and actor is not None:
            given = actor.options.get("broker_priority", -actor.priority)
        return int(given or 0)

    # queues

    def declare_queue(self, queue_name: str) -> None:
        """Declare a queue; nothing needs to be created in the cluster."""
        if queue_name not in self.queues:
            self.emit_before("declare_queue", queue_name)
            self.queues.add(queue_name)
            self.emit_after("declare_queue", queue_name)

    def get_declared_queues(self) -> set[str]:
        """Return the names of all queues declared so far."""
        return set(self.queues)

    def flush(self, queue_name: str) -> None:
        """Remove the waiting and delayed messages of a queue; running ones and dead letters stay."""
        with errors_of_dramatiq(), suppress(NoSuchQueue):
            self.client.queue_purge(self.name_of(queue_name), "ready")
            self.client.queue_purge(self.name_of(queue_name), "delayed")

    def flush_all(self) -> None:
        """Remove the waiting and delayed messages of all declared queues."""
        for queue_name in self.get_declared_queues():
            self.flush(queue_name)

    def join(self, queue_name: str, *, timeout: int | None = None) -> None:
        """Wait, `timeout` milliseconds at most, until a queue has no unfinished message; dead letters do not count.

        Raises QueueNotFound, QueueJoinTimeout.
        """
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        until = None if timeout is None else time.monotonic() + timeout / 1000
        while self._is_unfinished(queue_name):
            left = None if until is None else until - time.monotonic()
            if left is not None and left <= 0:
                raise QueueJoinTimeout(queue_name)
            with errors_of_dramatiq(), suppress(EventsLost), \
                    self.client.events("FINQ", self.name_of(queue_name), wait=left) as finished:
                finished.open()
                if self._is_unfinished(queue_name):
                    next(finished, None)

    def _is_unfinished(self, queue_name: str) -> bool:
        try:
            with errors_of_dramatiq():
                stat = self.client.queue_stat(self.name_of(queue_name))
        except NoSuchQueue:
            return False
        return bool(stat["ready"] or stat["delayed"] or stat["running"])

    # sending

    def enqueue(self, message: Message, *, delay: int | None = None) -> Message:
        """Send a message, `delay` milliseconds from now; on return it is on the disks of a majority.

        Within an atomic actor, and at the end of any message, it is sent with the acknowledgement of that message, in
        one step. Raises ConnectionClosed when the cluster does not answer, else sockpq's error when it refuses.
        """
        sent = SentMessage.of(message.copy(), self.cancel)
        self.logger.debug("Enqueueing message %r on queue %r.", sent.message_id, sent.queue_name)
        self.emit_before("enqueue", sent, delay)
        data, step = sent.encode(), collecting()
        if step is not None and isinstance(message, ReceivedMessage) and message.step is step and not step.retries:
            step.retry(self._retry(message, sent, data, delay))
            return sent
        put = Command(
            lambda to: to.put(
                self.name_of(sent.queue_name), data, self.priority_of(sent), delay=_seconds(delay), number=True,
                headers=headers_of(sent),
            ),
            lambda stored: self._stored(sent, delay, stored.number),
        )
        if step is not None and step.client is self.client:
            step.add(Part((put,), len(data)))
        else:
            with errors_of_dramatiq():
                execute(self.client, (put,))
        return sent

    def _stored(self, sent: SentMessage, delay: int | None, number: int | None) -> None:
        sent.stored(number)
        self.emit_after("enqueue", sent, delay)

    def _retry(self, old: ReceivedMessage, sent: SentMessage, data: bytes, delay: int | None) -> Sequence[Command]:
        """Return the commands that put the job of a message back, with another body: it keeps its number."""
        job, error = old.job, old._exception
        reason = NOT_OF_A_WORD.sub("_", type(error).__name__)[:REASON_MAX] if error else None
        return (
            Command(lambda to: to.change(job, data=data, priority=self.priority_of(sent))),
            Command(
                lambda to: to.later(
                    job, delay=_seconds(delay), reason=reason, error=sent.options.get("traceback"),
                ),
                lambda _: self.emit_after("enqueue", sent, delay),
            ),
        )

    def cancel(self, message: Message) -> bool:
        """Remove a message wherever it is; an actor that runs it gets Abort. Returns False if it has ended before.

        A message that this process has not sent is searched for by its id, in its queue, which takes longer.
        """
        number = message.number if isinstance(message, SentMessage) else None
        with errors_of_dramatiq():
            if number is None:
                found = self.client.find(self.name_of(message.queue_name), header=("message", message.message_id))
                number = next((job.number for job in found), None)
            try:
                if number is not None:
                    self.client.delete(Number(number))
            except JobNotFound:
                return False
        return number is not None

    # working

    def consume(self, queue_name: str, prefetch: int = 1, timeout: int = 5000) -> SockpqConsumer:
        """Return a consumer of a queue. `timeout`: the milliseconds that it waits for a message. Raises QueueNotFound.
        """
        if queue_name not in self.queues:
            raise QueueNotFound(queue_name)
        consumer = SockpqConsumer(
            self.client, self.name_of(queue_name), prefetch, timeout / 1000, self._ttl, self._cancellations,
        )
        self._consumers.add(consumer)
        return consumer

    def emit_before(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Tell middleware that something begins. An atomic actor collects from here on; a cancelled one is skipped."""
        if signal == "worker_boot":
            self._cancellations.start()
        elif signal == "worker_shutdown":
            self._cancellations.stop()
        message = args[0] if signal == "process_message" and isinstance(args[0], ReceivedMessage) else None
        if message is not None and self._is_atomic(message):
            message.step.begin()
        super().emit_before(signal, *args, **kwargs)
        if message is not None:
            self._cancellations.begin(message)
            if message.cancelled:
                raise SkipMessage("The message was cancelled.")

    def emit_after(self, signal: str, *args: Any, **kwargs: Any) -> None:
        """Tell middleware that something has happened. What it sends after an actor goes with the acknowledgement."""
        if signal in ("process_message", "skip_message") and isinstance(args[0], ReceivedMessage):
            message = args[0]
            self._cancellations.finish(message)
            if kwargs.get("exception") is not None:
                message.step.clear()
            message.step.begin()
        super().emit_after(signal, *args, **kwargs)

    def _is_atomic(self, message: ReceivedMessage) -> bool:
        given = message.options.get("atomic")
        if given is None:
            with suppress(ActorNotFound):
                given = self.get_actor(message.actor_name).options.get("atomic")
        return bool(given)

    def close(self) -> None:
        """Close the remaining consumers; their messages go back to their places. Closes the client if it is its own."""
        for consumer in list(self._consumers):
            consumer.release()
        if self._owns_client:
            self.client.close()


def _seconds(delay: int | None) -> float | None:
    return None if not delay else max(delay, 0) / 1000
