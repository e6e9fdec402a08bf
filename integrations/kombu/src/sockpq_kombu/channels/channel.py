"""A kombu channel: translates kombu's calls into commands."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from queue import Empty
from typing import Any, TypeVar
from uuid import uuid4

from kombu.exceptions import ChannelError
from kombu.log import get_logger
from kombu.transport import virtual
from kombu.transport.base import to_rabbitmq_queue_arguments
from sockpq import (
    BindingNotFound,
    JobExists,
    JobNotFound,
    JobRunning,
    NotSupported,
    Number,
    QueueNotFound,
    TopicNotFound,
)

from sockpq_kombu.background.acknowledgements import AckAction
from sockpq_kombu.background.event_loop import must_not_block
from sockpq_kombu.channels.collected import collected_now
from sockpq_kombu.channels.deliveries import Consumed, Deliveries, bury_bad, message_of
from sockpq_kombu.channels.qos import QoS
from sockpq_kombu.link import Link
from sockpq_kombu.mapping.errors import LOST
from sockpq_kombu.mapping.messages import (
    BadMessage,
    Raw,
    eta_of,
    expiration_of,
    job_group,
    job_headers,
    key_of,
    pack,
    unpack,
)
from sockpq_kombu.mapping.names import name_of, pattern_of, prefix_of, route_of
from sockpq_kombu.mapping.queue_order import policy_of
from sockpq_kombu.mapping.queue_settings import settings_of
from sockpq_kombu.transient.local_queues import channel_of

logger = get_logger("kombu.transport.sockpq")

T = TypeVar("T")


class Channel(virtual.Channel):
    """Publishes and declares at once; one thread fetches messages, another one sends acknowledgements."""

    QoS = QoS
    connection: Any
    closed: bool
    supports_fanout = True
    do_restore = False          # see QoS.restore_unacked_once
    body_encoding = None
    max_priority = 255

    # transport_options
    session_ttl = 30.0          # seconds after the last sign of life of this process; then its messages go back
    native_delay = True         # messages with an ETA wait in the server, not in the worker
    least_delay = 1.0           # seconds; those that are due sooner wait in the worker
    remove_revoked = True       # revoke() removes tasks that wait, where the servers can find them
    bury_rejected = False       # rejected without requeue: keep it among the dead ones
    queue_prefix = ""
    queue_order_strategy: str | None = None     # which queue of several is served next; None: by the cluster
    from_transport_options = (
        *virtual.Channel.from_transport_options, "session_ttl", "native_delay", "least_delay", "bury_rejected",
        "remove_revoked", "queue_prefix", "queue_order_strategy",
    )

    def __init__(self, connection: Any, **kwargs: Any) -> None:
        super().__init__(connection, **kwargs)
        self._link: Link = connection.link
        self._client = self._link.client
        self._prefix = prefix_of(connection.client.virtual_host, self.queue_prefix)
        self._process = os.getpid()
        self._auto_delete: set[str] = set()
        self._policy = policy_of(self.queue_order_strategy)
        self._deliveries = Deliveries(
            self._link, self.session_ttl, self._policy, self._message, lambda *counts: self.qos.room(*counts)
        )
        self._getter: Any = None

    # queues

    def prepare_queue_arguments(self, arguments: dict[str, Any] | None, **kwargs: Any) -> dict[str, Any]:
        """Convert queue arguments to RabbitMQ's names."""
        prepared: dict[str, Any] = to_rabbitmq_queue_arguments(arguments or {}, **kwargs)
        return prepared

    def queue_declare(self, queue: str | None = None, passive: bool = False, **kwargs: Any) -> Any:
        """Create a queue, or check that it exists.

        A queue that only this program uses is created when needed; never if it is bound to a transient exchange.
        """
        queue = queue or f"amq.gen-{uuid4()}"
        if passive:
            if not self._has_queue(queue):
                raise ChannelError(f"NOT_FOUND - no queue {queue!r}", (50, 10), "Channel.queue_declare", "404")
        else:
            self._new_queue(queue, **kwargs)
        uncounted = queue in self._link.pending or (must_not_block() and not passive)
        return virtual.base.queue_declare_ok_t(queue, 0 if uncounted else self._size(queue), 0)

    def _new_queue(self, queue: str, durable: bool = True, auto_delete: bool = False, exclusive: bool = False,
                   arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        if auto_delete:
            self._auto_delete.add(queue)
        if queue not in self._link.local_queues:
            self._link.pending[queue] = settings_of(arguments or {}, auto_delete or exclusive)
            if durable:
                self._make_queues()

    def _make_queues(self) -> None:
        """Create the declared queues that have turned out to be needed."""
        while self._link.pending:
            queue, settings = self._link.pending.popitem()
            self._link.send(partial(self._link.make_queue, self._name(queue), settings))

    def _name(self, queue: str) -> str:
        return name_of(self._prefix, queue)

    def _has_queue(self, queue: str, **kwargs: Any) -> bool:
        self._make_queues()
        if queue in self._link.local_queues:
            return True
        return self._ask_about(queue, self._client.queue_stat) is not None

    def _size(self, queue: str) -> int:
        self._make_queues()
        if queue in self._link.local_queues:
            return len(self._link.local_queues[queue].messages)
        found = self._ask_about(queue, self._client.queue_stat)
        return 0 if found is None else int(found["ready"])

    def _purge(self, queue: str) -> int:
        self._make_queues()
        if queue in self._link.local_queues:
            size = self._size(queue)
            self._link.local_queues[queue].messages.clear()
            return size
        return self._ask_about(queue, lambda name: self._client.queue_purge(name, "ready")) or 0

    def _ask_about(self, queue: str, question: Callable[[str], T]) -> T | None:
        """Ask about a queue; None if it does not exist."""
        def ask() -> T | None:
            try:
                return question(self._name(queue))
            except QueueNotFound:
                return None

        return self._link.call(ask)

    def queue_delete(self, queue: str, if_unused: bool = False, if_empty: bool = False, **kwargs: Any) -> None:
        """Delete the queue with its messages and bindings."""
        self._auto_delete.discard(queue)
        self._link.pending.pop(queue, None)
        self.state.queue_bindings_delete(queue)
        if local := self._link.local_queues.pop(queue, None):
            local.close()
            return
        if if_empty and self._size(queue):
            return

        def delete() -> None:
            with suppress(QueueNotFound):
                self._client.queue_delete(self._name(queue), force=True)

        self._link.send(delete)

    # exchanges: topics of the server, unless they are transient

    def queue_bind(self, queue: str, exchange: str | None = None, routing_key: str = "",
                   arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        """Route messages published to the exchange with such a key into the queue."""
        exchange = exchange or "amq.direct"
        if exchange not in self.state.exchanges:
            self.exchange_declare(exchange)
        kind = self.typeof(exchange).type
        if self._link.is_transient(exchange):
            self._link.pending.pop(queue, None)
            binding = self._link.local_queue(queue).bind(self._client, self._prefix, exchange, kind, routing_key)
            if binding is not None:
                self._link.notices.subscribe(binding.start)
        else:
            self._make_queues()
            topic, name, pattern = self._name(exchange), self._name(queue), self._pattern(kind, routing_key)
            self._link.send(lambda: self._client.topic_bind(topic, name, pattern))
        self.state.binding_declare(queue, exchange, routing_key, arguments)

    def queue_unbind(self, queue: str, exchange: str | None = None, routing_key: str = "",
                     arguments: dict[str, Any] | None = None, **kwargs: Any) -> None:
        exchange = exchange or "amq.direct"
        self.state.binding_delete(queue, exchange, routing_key)
        if local := self._link.local_queues.get(queue):
            local.unbind(exchange, routing_key)
            return
        pattern = self._pattern(self.typeof(exchange).type, routing_key)

        def unbind() -> None:
            with suppress(TopicNotFound, BindingNotFound, QueueNotFound):
                self._client.topic_unbind(self._name(exchange), self._name(queue), pattern)

        self._link.send(unbind)

    @staticmethod
    def _pattern(kind: str, routing_key: str) -> str | None:
        if kind == "fanout":
            return None
        return pattern_of(routing_key) if kind == "topic" else route_of(routing_key)

    def exchange_delete(self, exchange: str, if_unused: bool = False, nowait: bool = False) -> None:
        """Remove all bindings of the exchange."""
        self.state.exchanges.pop(exchange, None)

        def delete() -> None:
            with suppress(TopicNotFound):
                self._client.topic_delete(self._name(exchange))

        self._link.send(delete)

    def get_table(self, exchange: str) -> list[tuple[str, str | None, str]]:
        """Return the bindings of an exchange from the server: key, pattern, queue."""
        name = self._name(exchange)
        bindings = [one for one in self._link.call(lambda: self._client.topic_list(name)) if one.topic == name]
        return [(one.pattern or "", one.pattern, one.queue) for one in bindings]

    # publishing

    def basic_publish(self, message: Raw, exchange: str, routing_key: str, **kwargs: Any) -> None:
        """Publish a message: on return it is on the disks of a majority or, in a transient exchange, sent to listeners.

        In an event loop, which cannot wait, it is only queued on return: a refusal is logged, and if all servers are
        unreachable for as long as the options allow, the connection is lost.
        """
        self._inplace_augment_message(message, exchange, routing_key)
        if not exchange:
            self._put(routing_key, message)
        elif self._link.is_transient(exchange):
            self._link.notices.tell(channel_of(self._prefix, exchange, routing_key), pack(message), routing_key)
        else:
            self._publish(exchange, routing_key, message)

    def _put(self, queue: str, message: Raw, **kwargs: Any) -> None:
        self._make_queues()
        name, data, priority = self._name(queue), pack(message), self._get_message_priority(message)
        key, options, headers = key_of(message), self._options(message), job_headers(message)
        if (collected := collected_now()) is not None:
            collected.add(self._link, len(data), lambda transaction: transaction.put(
                name, data, priority, key=key, on_duplicate="ignore", headers=self._link.shown(headers), **options,
            ))
            return
        self._link.send(lambda: self._link.with_headers(headers, lambda known: self._client.put(
            name, data, priority, key=key, on_duplicate="ignore", headers=known, **options,
        )))

    def _publish(self, exchange: str, routing_key: str, message: Raw) -> None:
        self._make_queues()
        name, data, priority = self._name(exchange), pack(message), self._get_message_priority(message)
        key, options, headers = key_of(message), self._options(message), job_headers(message)
        fallback = self._name(self.deadletter_queue) if self.deadletter_queue else None
        collected = collected_now()
        if collected is not None and not fallback:      # a transaction cannot look whether there are bindings
            collected.add(self._link, len(data), lambda transaction: transaction.publish(
                name, data, priority, route=route_of(routing_key), key=key, headers=self._link.shown(headers),
                **options,
            ))
            return

        def publish() -> None:
            try:
                count = self._link.with_headers(headers, lambda known: self._client.publish(
                    name, data, priority, route=route_of(routing_key), key=key, headers=known, **options,
                ))
            except JobExists:        # it had arrived, and the answer was lost
                return
            if not count and fallback:
                self._link.with_headers(headers, lambda known: self._client.put(
                    fallback, data, priority, key=key, on_duplicate="ignore", headers=known, **options,
                ))

        self._link.send(publish)

    def _options(self, message: Raw) -> dict[str, Any]:
        """Return the times from and until which a message may be delivered, and its group."""
        group = job_group(message)
        return self._times(message) if group is None else {**self._times(message), "group": group}

    def _times(self, message: Raw) -> dict[str, Any]:
        times: dict[str, Any] = {}
        now = time.time()
        eta = eta_of(message) if self.native_delay else None
        if eta is not None and eta > now + self.least_delay:
            times["at"] = eta
        expiration = expiration_of(message)
        if expiration is not None:          # the server counts from the moment at which it may be delivered
            times["ttl"] = max(expiration - max(times.get("at", now) - now, 0.0), 0.001)
        return times

    # removing waiting messages

    def remove_waiting(self, task_id: str, wanted: Callable[[Any], bool]) -> bool:
        """Remove the messages of this task that no worker has, if they are `wanted`; returns whether any was removed.

        They are found by the header of their jobs, which old servers do not have. A retry has the id of the running
        task, so a running job is never removed.
        """
        return self._link.call(lambda: self._remove_waiting(task_id, wanted))

    def _remove_waiting(self, task_id: str, wanted: Callable[[Any], bool]) -> bool:
        removed = False
        try:
            waiting = list(self._client.find(state=("ready", "delayed"), header=("id", task_id)))
        except NotSupported:
            return False
        for found in waiting:
            if found.number is None or not found.queue.startswith((self._prefix, f"_{self._prefix}")):
                continue
            number = Number(found.number)
            job = self._client.peek(number)
            if job is None or not self._is_wanted(job.data, wanted):
                continue
            with suppress(JobNotFound, JobRunning):         # a worker has it by now, and knows of the revocation
                self._client.delete(number, untaken=True)
                removed = True
        return removed

    def _is_wanted(self, data: bytes, wanted: Callable[[Any], bool]) -> bool:
        try:
            return wanted(self._message(unpack(data, "", redelivered=False)))
        except BadMessage:
            return False

    # consuming

    def basic_consume(self, queue: str, no_ack: bool, callback: Any, consumer_tag: str, **kwargs: Any) -> None:
        """Give the messages of this queue to `callback`."""
        self._make_queues()

        def hold(message: Any) -> None:
            if not no_ack:
                self.qos.append(message, message.delivery_tag)
            self.qos.beginning += 1

        def deliver(message: Any) -> None:
            try:
                callback(message)
            finally:
                self.qos.beginning -= 1
                if self.qos.free is not None:
                    self.poll()

        self._tag_to_queue[consumer_tag] = queue
        self._consumers.add(consumer_tag)
        self._deliveries.begin(self._name(queue), Consumed(queue, no_ack, hold, deliver))

    def basic_cancel(self, consumer_tag: str) -> None:
        """Stop delivering messages of this consumer; those already fetched are put back."""
        if consumer_tag not in self._consumers:
            return
        self._consumers.remove(consumer_tag)
        queue = self._tag_to_queue.pop(consumer_tag)
        if queue in self._tag_to_queue.values():        # another one of this channel consumes from it
            return
        self._deliveries.end(self._name(queue), queue)
        if queue in self._auto_delete:
            try:
                self.queue_delete(queue)
            except LOST as error:
                logger.warning("queue %s is left to its expiry: %s", queue, error)

    def basic_qos(self, prefetch_size: int = 0, prefetch_count: int = 0, apply_global: bool = False) -> None:
        """Change how many messages may be unacknowledged."""
        super().basic_qos(prefetch_size, prefetch_count, apply_global)
        self._deliveries.poll()

    def limit_to(self, free: Callable[[], int]) -> None:
        """Take at most as many messages as `free` returns; it is called, in any thread, whenever there may be room.

        `free` need not count a message until its consumer's callback has returned.
        """
        self.qos.free = free

    def poll(self) -> None:
        """Fetch more messages if there is room."""
        self._deliveries.poll()

    def basic_get(self, queue: str, no_ack: bool = False, **kwargs: Any) -> Any:
        """Return a message, None if there is none."""
        message = None
        while message is None:
            try:
                message = self._get(queue)
            except Empty:
                return None
        if no_ack:
            self.end(AckAction.DONE, message.delivery_tag)
        else:
            self.qos.append(message, message.delivery_tag)
        return message

    def _get(self, queue: str, timeout: float | None = None) -> Any:
        """Return a message; None if the next job was not a valid one. Raises Empty."""
        self._make_queues()
        if local := self._link.local_queues.get(queue):
            if not local.messages:
                raise Empty
            return self._message(local.messages.popleft())
        if self._getter is None:
            self._getter = self._client.consumer(self.session_ttl)
        jobs = self._link.call(lambda: self._getter.get_many(
            1, self._name(queue), block=False, meta=True, policy=self._policy
        ))
        if not jobs:
            raise Empty
        try:
            return self._message(message_of(jobs[0]))
        except BadMessage as error:
            bury_bad(self._link, jobs[0], error)
            return None

    def _message(self, raw: Raw) -> Any:
        """Convert a job to kombu's message. Raises BadMessage."""
        try:
            return self.Message(raw, channel=self)
        except Exception as error:      # of what decodes the body, or of a class of the program's own
            raise BadMessage(f"it cannot be decoded: {type(error).__name__}: {error}") from error

    def basic_recover(self, requeue: bool = False) -> None:
        """Put back all unacknowledged messages, in their old places."""
        self.qos.restore_unacked()

    def end(self, action: AckAction, delivery_tag: str) -> None:
        """Acknowledge a delivered message.

        Messages of local queues have no delivery tag, and need no acknowledgement.
        """
        if delivery_tag.isdigit():
            self._link.acknowledgements.add(action, int(delivery_tag))

    def bury(self, message: Any) -> None:
        """Reject a delivered message that cannot be read: it becomes a dead job of its queue."""
        message._state = "REJECTED"
        self.qos.bury(message.delivery_tag)

    # deliveries, in the thread of the program

    def waiting(self) -> int:
        """The number of messages that can be delivered."""
        return self._deliveries.waiting()

    def deliver_told(self) -> bool:
        """Give one message of a transient exchange to its consumer; returns False when there is none."""
        return self._deliveries.deliver_told()

    def deliver_one(self) -> bool:
        """Give one message to its consumer; returns False when there is none."""
        return self._deliveries.deliver_one()

    def close(self) -> None:
        """Close the channel; unacknowledged messages go back to their places.

        In a forked child nothing is sent.
        """
        if self.closed:
            return
        self.closed = True
        connection = self.connection
        if self._process == os.getpid() and connection is not None:
            for consumer in list(self._consumers):
                try:
                    self.basic_cancel(consumer)
                except LOST as error:
                    logger.warning("a consumer was not cancelled: %s", error)
            self._link.end(self._end_sessions)
            if self._qos:
                self._qos.restore_unacked_once()
        elif self._qos:
            self._qos.forget()
        if connection is not None:
            connection.close_channel(self)
        self.exchange_types = None

    def _end_sessions(self) -> None:
        self._deliveries.stop()
        if self._getter is not None:
            self._getter.close()
