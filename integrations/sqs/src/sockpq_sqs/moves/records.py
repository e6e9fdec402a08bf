"""The records of a queue's newest tasks: one job of the cluster for each dead-letter queue, that is never handed out.

A second job, in `sqs:moves`, is the work: the front end that has its lease moves the messages, and when that front end
dies another one goes on.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import msgspec
from sockpq import Aborted, JobExists, JobNotFound, Key, Number
from sockpq.aio import Client

from sockpq_sqs.model.errors import throttled
from sockpq_sqs.moves.task import Task
from sockpq_sqs.queues.names import QueueName

TASKS = "sqs:tasks"
MOVES = "sqs:moves"         # without the account's prefix: each front end serves all accounts
KEPT_MAX = 10               # Amazon's: as many of a queue are listed
ATTEMPTS_MAX = 20

_decoder = msgspec.json.Decoder(list[Task])


class Work(msgspec.Struct, frozen=True):
    """The body of the job of a task: the account and the queue whose dead letters it moves, and its id."""

    account: str
    source: str
    id: str


class Records:
    """Reads and changes the records with the front end's own client."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._prepared: set[str] = set()

    async def read(self, source: QueueName) -> list[Task]:
        """Return the tasks of a queue, the newest first."""
        return (await self._read(source))[0]

    async def _read(self, source: QueueName) -> tuple[list[Task], int | None]:
        job = await self._client.peek(Key(_tasks(source), source.name))
        return (_decoder.decode(job.data), job.number) if job else ([], None)

    async def change(
        self, source: QueueName, update: Callable[[list[Task]], list[Task]], work: Work | None = None,
    ) -> None:
        """Replace the tasks of a queue with what `update` makes of them; `work`: put its job as well, atomically.

        `update` may be called again, when another front end has changed them meanwhile.
        """
        tasks_queue = _tasks(source)
        if tasks_queue not in self._prepared:
            await self._client.queue_pause(tasks_queue, "out")
            self._prepared.add(tasks_queue)
        for _ in range(ATTEMPTS_MAX):
            tasks, number = await self._read(source)
            changed = update(tasks)
            if changed == tasks:
                return
            try:
                async with self._client.transaction() as transaction:
                    if number is not None:
                        transaction.delete(Number(number))
                    transaction.put(
                        tasks_queue, msgspec.json.encode(changed[:KEPT_MAX]), key=source.name, number=True,
                    )
                    if work:
                        transaction.put(MOVES, msgspec.json.encode(work), key=work.id)
                return
            except Aborted as error:
                if not isinstance(error.reason, JobNotFound | JobExists):
                    raise
        raise throttled()

    async def is_lost(self, task: Task) -> bool:
        """Return whether a task is active and its job is gone, for example because somebody purged the queue."""
        return task.is_active and await self._client.peek(Key(MOVES, task.id)) is None

    async def forget(self, source: QueueName) -> None:
        """Remove the tasks of a queue that is deleted; those that are active end."""
        with suppress(JobNotFound):
            await self._client.delete(Key(_tasks(source), source.name))

    async def update(self, source: QueueName, task_id: str, **changes: object) -> Task | None:
        """Change one task, by the names of its fields; returns it, None if it is no longer kept."""
        found: Task | None = None

        def update(tasks: list[Task]) -> list[Task]:
            nonlocal found
            changed = [msgspec.structs.replace(one, **changes) if one.id == task_id else one for one in tasks]
            found = next((one for one in changed if one.id == task_id), None)
            return changed

        await self.change(source, update)
        return found


def _tasks(source: QueueName) -> str:
    """Return the queue of the records of this queue's account."""
    return f"{source.prefix}{TASKS}"
