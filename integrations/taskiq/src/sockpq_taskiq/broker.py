"""The broker: sends tasks, and gives them to workers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Iterable
from contextlib import suppress
from contextvars import ContextVar
from typing import Any

from sockpq import SockpqError
from sockpq.aio import Client, Job, Transaction
from sockpq.names import escape_name
from taskiq import AckableMessage, AsyncBroker, BrokerMessage, SmartRetryMiddleware

from sockpq_taskiq.held_task import LOST, PAUSE_S, HeldTask, current, logger
from sockpq_taskiq.labels import PutOptions, is_true, put_options
from sockpq_taskiq.middleware import RunningTask

TTL_S = 30.0
PREFETCH = 10
UNKNOWN_S = 5.0             # until a task whose name this worker does not know is offered again
HEADER_BYTES_MAX = 1024
DEDUP_S = 300.0             # more than the clocks of two schedulers may differ

# The run of a schedule that is sent here: the cluster takes each once, however many schedulers send it.
firing: ContextVar[str | None] = ContextVar("sockpq_taskiq_firing", default=None)


class SockpqBroker(AsyncBroker):
    """A broker whose tasks are jobs of a sockpqd cluster."""

    def __init__(
        self, servers: str | Iterable[str] | None = None, *, queue_name: str = "taskiq",
        queues: Iterable[str] | None = None, prefix: str = "", ttl: float = TTL_S, prefetch: int = PREFETCH,
        **options: Any,
    ) -> None:
        """`servers` and `options` are those of sockpq.aio.Client: addresses, `tls`, `user`, `secret_file` and others.

        `queue_name`: for tasks without the label `queue_name`. `queues`: those that a worker listens to, by default
        that one; of several it is given the task of the greatest priority. `prefix`: before the names of all queues.
        `ttl`: when a worker has given no sign of life for this many seconds, its tasks go to others. `prefetch`: the
        number of tasks that a worker takes at once, beyond those that it works on.
        """
        super().__init__()
        self.queue_name = queue_name
        self.queues = [queue_name] if queues is None else list(queues)
        self.prefix = prefix
        self.ttl = ttl
        self.prefetch = prefetch
        self._servers = servers
        self._options = options
        self._client: Client | None = None
        self._takers: list[Any] = []
        self._taken: dict[str, deque[HeldTask]] = {}        # by task id: taken, and not begun
        self.add_middlewares(RunningTask(self._begin))

    @property
    def client(self) -> Client:
        """The client of this broker, for the event loop that first uses it after startup."""
        if self._client is None:
            self._client = Client(self._servers, **self._options)
        return self._client

    def name_of(self, queue_name: str) -> str:
        """Return the name of a queue in the cluster."""
        return escape_name(queue_name, self.prefix)

    # sending

    async def kick(self, message: BrokerMessage) -> None:
        """Send a task; on return it is on the disks of a majority. Raises sockpq's errors.

        When the task that runs here sends itself again, as middleware for retries and `Context.requeue` do, its job is
        put back with the new message, in one step: no crash leaves two of it, or none.
        """
        await self.send(message, put_options(message.labels, retried=self._is_retried(message)))

    async def send(self, message: BrokerMessage, options: PutOptions) -> None:
        """Send a task with these options instead of those in its labels. See `kick`."""
        held, run = current.get(), firing.get()
        if held is not None and not held.ended and held.task_id == message.task_id:
            await held.replace(lambda transaction: self._put_back(transaction, held.job, message, options))
            return
        await self.client.put(
            self._queue_of(options), message.message, options.priority, delay=options.delay, at=options.at,
            ttl=options.ttl, key=options.key, on_duplicate=options.on_duplicate, group=options.group,
            headers=_headers(message), dedup=None if run is None else (run, DEDUP_S),
        )

    def _put_back(self, transaction: Transaction, job: Job, message: BrokerMessage, options: PutOptions) -> None:
        queue = self._queue_of(options)
        if queue == job.queue:
            transaction.change(job, data=message.message, priority=options.priority)
            transaction.later(job, delay=options.delay, at=options.at)
        else:
            transaction.move(
                job, queue, data=message.message, priority=options.priority, delay=options.delay, at=options.at,
            )

    def _queue_of(self, options: PutOptions) -> str:
        return self.name_of(options.queue_name or self.queue_name)

    def _is_retried(self, message: BrokerMessage) -> bool:
        given = message.labels.get("retry_on_error")
        if given is not None:
            return is_true(given)
        return any(isinstance(one, SmartRetryMiddleware) and one.default_retry_label for one in self.middlewares)

    # working

    async def listen(self) -> AsyncGenerator[AckableMessage, None]:
        """Yield tasks as they come. Tasks that were taken but never asked for go back to their places at the end."""
        client = self.client
        taker = client.consumer(self.ttl)
        self._takers.append(taker)
        names = [self.name_of(queue) for queue in self.queues]
        taken: deque[Job] = deque()
        try:
            while True:
                try:
                    taken.extend(await taker.get_many(
                        self.prefetch, names, meta=True, policy="priority" if len(names) > 1 else None,
                    ))
                except LOST as error:
                    logger.warning("No tasks can be taken at present: %s", error)
                    await asyncio.sleep(PAUSE_S)
                while taken:
                    held = await self._hold(client, taken[0])
                    taken.popleft()
                    if held is not None:
                        yield AckableMessage(data=held.job.data, ack=held.ack)
        finally:
            for job in taken:
                await HeldTask(client, job, "").give_back()

    async def _hold(self, client: Client, job: Job) -> HeldTask | None:
        """Return the task of a job; one that this worker does not know goes back, as another one may know it."""
        try:
            message = self.formatter.loads(job.data)
        except Exception:       # a serializer raises anything; Taskiq logs the message and acknowledges it
            return HeldTask(client, job, None)
        if self.find_task(message.task_name) is None:
            logger.warning("Task %r is not known to this worker; it is offered to others.", message.task_name)
            await HeldTask(client, job, message.task_id).postpone(UNKNOWN_S)
            return None
        held = HeldTask(client, job, message.task_id)
        self._taken.setdefault(message.task_id, deque()).append(held)
        return held

    def _begin(self, task_id: str) -> HeldTask | None:
        waiting = self._taken.get(task_id)
        if not waiting:
            return None
        held = waiting.popleft()
        if not waiting:
            del self._taken[task_id]
        return held

    async def shutdown(self) -> None:
        """Give back tasks that were taken and are not done, and close the client."""
        await super().shutdown()
        client, self._client = self._client, None
        takers, self._takers = self._takers, []
        waiting, self._taken = self._taken, {}
        if client is None:
            return
        for held in (held for some in waiting.values() for held in some):
            with suppress(SockpqError):
                await held.give_back()
        for taker in takers:
            await taker.close()
        await client.close()


def _headers(message: BrokerMessage) -> dict[str, str]:
    """Return the headers of a task's job, by which operators find it."""
    shown = {"task": message.task_name, "id": message.task_id}
    return {name: text for name, text in shown.items() if text.isprintable() and len(text.encode()) <= HEADER_BYTES_MAX}
