"""Results and progress of tasks as jobs with a key and a time to live; nothing polls for them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from sockpq import EventsLost, JobNotFound, Key
from sockpq.aio import Client
from sockpq.names import escape_key, escape_name
from taskiq import AsyncResultBackend, ResultGetError, TaskiqResult, TaskiqResultTimeoutError
from taskiq.abc.serializer import TaskiqSerializer
from taskiq.depends.progress_tracker import TaskProgress
from taskiq.serializers import JSONSerializer, PickleSerializer

QUEUE = "taskiq.results"
PROGRESS_QUEUE = "taskiq.progress"
KEEP_S = 86_400.0


class ResultIsMissing(ResultGetError):
    """There is no result with this id: not yet, or no longer."""

    __template__ = "There is no result of this task"


class SockpqResultBackend(AsyncResultBackend):
    """Stores results in the cluster."""

    def __init__(
        self, servers: str | Iterable[str] | None = None, *, keep: float = KEEP_S, keep_results: bool = True,
        prefix: str = "", serializer: TaskiqSerializer | None = None, **options: Any,
    ) -> None:
        """`servers` and `options` are those of sockpq.aio.Client. `keep`: seconds for which a result is kept.

        `keep_results=False`: it is removed when it is read. `prefix`: before the names of the two queues that hold
        results and progress. `serializer`: one of Taskiq's, JSON by default.
        """
        self._servers = servers
        self._options = options
        self._keep = keep
        self._keep_results = keep_results
        self._serializer = serializer or JSONSerializer()
        self._queue = escape_name(QUEUE, prefix)
        self._progress_queue = escape_name(PROGRESS_QUEUE, prefix)
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """The client of this backend, for the event loop that first uses it after startup."""
        if self._client is None:
            self._client = Client(self._servers, **self._options)
        return self._client

    async def shutdown(self) -> None:
        """Close the client."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def set_result(self, task_id: str, result: TaskiqResult) -> None:
        """Store a result, replacing an earlier one of the same task."""
        item = self._item(task_id)
        async with self.client.transaction() as transaction:
            transaction.put(
                self._queue, self._dumped(result), key=escape_key(task_id), on_duplicate="replace", ttl=self._keep,
            )
            transaction.item_hold(item)         # the end of this item, without a job, is the event for those that wait
            transaction.item_release(item)

    async def is_result_ready(self, task_id: str) -> bool:
        """Return whether there is a result."""
        return await self.client.peek(Key(self._queue, escape_key(task_id))) is not None

    async def get_result(self, task_id: str, with_logs: bool = False) -> TaskiqResult:
        """Return the result. Raises ResultIsMissing."""
        key = Key(self._queue, escape_key(task_id))
        found = await self.client.peek(key)
        if found is None:
            raise ResultIsMissing
        if not self._keep_results:
            with suppress(JobNotFound):
                await self.client.delete(key)
        result = TaskiqResult.model_validate(self._serializer.loadb(found.data))
        if not with_logs:
            result.log = None
        return result

    async def wait_result(
        self, task_id: str, *, timeout: float | None = None, with_logs: bool = False,
    ) -> TaskiqResult:
        """Wait for a result without polling, `timeout` seconds at most. Raises TaskiqResultTimeoutError.

        Taskiq's own `task.wait_result()` works as well: it asks every 0.2 seconds.
        """
        loop = asyncio.get_running_loop()
        until = None if timeout is None else loop.time() + timeout
        while not await self.is_result_ready(task_id):
            left = None if until is None else until - loop.time()
            if left is not None and left <= 0:
                raise TaskiqResultTimeoutError(timeout=timeout)
            with suppress(EventsLost):
                async with self.client.events("FINI", self._item(task_id), wait=left) as stored:
                    await stored.open()         # from now on no result is missed, so look again
                    if not await self.is_result_ready(task_id):
                        await anext(stored, None)
        return await self.get_result(task_id, with_logs)

    async def set_progress(self, task_id: str, progress: TaskProgress) -> None:
        """Store the progress of a task, replacing any stored before."""
        await self.client.put(
            self._progress_queue, self._dumped(progress), key=escape_key(task_id), on_duplicate="replace",
            ttl=self._keep,
        )

    async def get_progress(self, task_id: str) -> TaskProgress | None:
        """Return the progress that was stored last, if any."""
        found = await self.client.peek(Key(self._progress_queue, escape_key(task_id)))
        return None if found is None else TaskProgress.model_validate(self._serializer.loadb(found.data))

    def _dumped(self, value: Any) -> bytes:
        mode = "python" if isinstance(self._serializer, PickleSerializer) else "json"
        data: bytes = self._serializer.dumpb(value.model_dump(mode=mode))
        return data

    def _item(self, task_id: str) -> str:
        return escape_name(f"{self._queue}.{task_id}")
