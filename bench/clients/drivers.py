"""The same two actions with each library: put a task, and process tasks one by one, each acknowledged by itself.

Each driver is used as the library's own documentation does it, with a blocking client where there is one.
"""

from __future__ import annotations

import asyncio
import importlib
import os
from collections.abc import Callable, Iterator
from typing import Any, Protocol

QUEUE = "bench-clients"
IDLE_S = 1.0            # a worker that gets nothing for this long has finished
LEASE_S = 60


class Contender(Protocol):
    """One connection, or client, of one process."""

    def put(self, body: bytes) -> None:
        """Queue a task; it is as safe as the server makes it when this returns."""
        ...

    def work(self) -> Iterator[bytes]:
        """Yield tasks, each acknowledged when the next one is requested, until none comes for IDLE_S."""
        ...

    def close(self) -> None:
        ...


class Sockpq:
    """sockpq against sockpqd: replicated, on the disks of a majority."""

    def __init__(self, address: str, prefetch: int) -> None:
        import sockpq

        self._client = sockpq.Client(address)
        self._prefetch = prefetch

    def put(self, body: bytes) -> None:
        self._client.put(QUEUE, body)

    def work(self) -> Iterator[bytes]:
        for job in self._client.consume(QUEUE, expire=LEASE_S, wait=IDLE_S, prefetch=self._prefetch):
            yield job.data

    def close(self) -> None:
        self._client.close()


class Beanstalk:
    """greenstalk against beanstalkd: one server; as durable as its options -b and -f say."""

    def __init__(self, address: str, prefetch: int) -> None:
        self._library = importlib.import_module("greenstalk")
        host, _, port = address.rpartition(":")
        self._client: Any = self._library.Client((host, int(port)), encoding=None, use=QUEUE, watch=QUEUE)

    def put(self, body: bytes) -> None:
        self._client.put(body, ttr=LEASE_S)

    def work(self) -> Iterator[bytes]:
        while True:
            try:
                job = self._client.reserve(timeout=IDLE_S)
            except self._library.TimedOutError:
                return
            yield job.body
            self._client.delete(job)

    def close(self) -> None:
        self._client.close()


class RedisLists:
    """redis-py with lists: a task is moved into a list of its worker, and removed from there when it is done."""

    def __init__(self, address: str, prefetch: int) -> None:
        host, _, port = address.rpartition(":")
        self._client: Any = importlib.import_module("redis").Redis(host, int(port))
        self._own = f"{QUEUE}-{os.getpid()}"

    def put(self, body: bytes) -> None:
        self._client.lpush(QUEUE, body)

    def work(self) -> Iterator[bytes]:
        while (body := self._client.blmove(QUEUE, self._own, IDLE_S, "RIGHT", "LEFT")) is not None:
            yield body
            self._client.lrem(self._own, 1, body)

    def close(self) -> None:
        self._client.close()


class Pika:
    """pika against a RabbitMQ quorum queue: replicated, on the disks of a majority, with publisher confirms."""

    def __init__(self, address: str, prefetch: int) -> None:
        self._library = importlib.import_module("pika")
        host, _, port = address.rpartition(":")
        self._connection: Any = self._library.BlockingConnection(self._library.ConnectionParameters(host, int(port)))
        self._channel = self._connection.channel()
        self._channel.queue_declare(QUEUE, durable=True, arguments={"x-queue-type": "quorum"})
        self._channel.confirm_delivery()
        self._channel.basic_qos(prefetch_count=prefetch)
        self._properties = self._library.BasicProperties(delivery_mode=2)

    def put(self, body: bytes) -> None:
        self._channel.basic_publish("", QUEUE, body, self._properties, mandatory=True)

    def work(self) -> Iterator[bytes]:
        came: list[tuple[int, bytes]] = []
        self._channel.basic_consume(QUEUE, lambda _, method, __, body: came.append((method.delivery_tag, body)))
        while True:
            self._connection.process_data_events(time_limit=IDLE_S)
            if not came:
                return
            while came:
                tag, body = came.pop(0)
                yield body
                self._channel.basic_ack(tag)

    def close(self) -> None:
        self._connection.close()


class Nats:
    """nats-py against JetStream, a work queue with a copy on each of three servers; asyncio is all this library has."""

    def __init__(self, address: str, prefetch: int) -> None:
        self._loop = asyncio.new_event_loop()
        self._prefetch = prefetch
        self._library = importlib.import_module("nats")
        self._errors = importlib.import_module("nats.errors")
        self._connection: Any = self._run(self._library.connect(f"nats://{address}"))
        self._stream = self._connection.jetstream()
        api = importlib.import_module("nats.js.api")
        config = api.StreamConfig(
            name=QUEUE, subjects=[QUEUE], retention=api.RetentionPolicy.WORK_QUEUE, num_replicas=3
        )
        self._run(self._stream.add_stream(config))

    def _run(self, coroutine: Any) -> Any:
        return self._loop.run_until_complete(coroutine)

    def put(self, body: bytes) -> None:
        self._run(self._stream.publish(QUEUE, body))

    def work(self) -> Iterator[bytes]:
        subscription = self._run(self._stream.pull_subscribe(QUEUE, durable=QUEUE))
        while True:
            try:
                messages = self._run(subscription.fetch(self._prefetch, timeout=IDLE_S))
            except self._errors.TimeoutError:
                return
            for message in messages:
                yield message.data
                self._run(message.ack())

    def close(self) -> None:
        self._run(self._connection.close())
        self._loop.close()


DRIVERS: dict[str, Callable[[str, int], Contender]] = {
    "sockpq": Sockpq, "greenstalk": Beanstalk, "redis": RedisLists, "pika": Pika, "nats": Nats,
}
