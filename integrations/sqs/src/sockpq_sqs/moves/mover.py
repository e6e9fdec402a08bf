"""Carries out tasks: takes their jobs, and moves messages in portions until all are moved or the task is cancelled."""

from __future__ import annotations

import asyncio
import logging

import msgspec
from sockpq import JobNotFound, QueueNotFound, SockpqError
from sockpq.aio import Client, Job

from sockpq_sqs.model.errors import SqsError
from sockpq_sqs.moves.records import MOVES, Records, Work
from sockpq_sqs.moves.task import Task
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry

logger = logging.getLogger("sockpq_sqs")

LEASE_S = 20.0          # another front end goes on with a task so long after this one has died
PORTION_MAX = 500       # messages moved by one command, and between two looks whether the task is cancelled
TASKS_MAX = 100         # that one front end carries out at a time
WAIT_S = 600.0          # of one command that waits for a task
FOREIGN_S = 1.0         # before a task of an account that is not configured here is offered again
RETRY_S = 1.0           # after a command that the cluster did not execute


class Mover:
    """Carries out tasks while `run()` runs."""

    def __init__(self, client: Client, names: Names, registry: Registry, records: Records) -> None:
        """`client`: the front end's own."""
        self._client = client
        self._names = names
        self._registry = registry
        self._records = records
        self._running: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Take tasks and carry them out, until this is cancelled; then other front ends go on with them."""
        try:
            while True:
                try:
                    await self._take()
                except SockpqError as error:
                    logger.warning("no task that moves messages can be taken: %s", error)
                    await asyncio.sleep(RETRY_S)
        finally:
            running = list(self._running)
            for one in running:
                one.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def _take(self) -> None:
        if len(self._running) >= TASKS_MAX:
            await asyncio.wait(self._running, return_when=asyncio.FIRST_COMPLETED)
            return
        job = await self._client.get(MOVES, expire=LEASE_S, then="later", wait=WAIT_S)
        if job is None:
            return
        started = asyncio.create_task(self._carry_out(job))
        self._running.add(started)
        started.add_done_callback(self._running.discard)

    async def _carry_out(self, job: Job) -> None:
        """Move the messages of one task, and report how it ended."""
        try:
            work = msgspec.json.decode(job.data, type=Work)
            source = self._names.queue(work.account, work.source)
        except msgspec.MsgspecError as error:
            logger.error("a task that moves messages cannot be read, and is dropped: %s", error)
            await job.done()
            return
        except SqsError:                # another front end is configured with this account
            await job.later(delay=FOREIGN_S)
            return
        try:
            while not await self._step(job, source, work.id):
                pass
            await job.done()
        except JobNotFound:
            logger.warning("the task that moves messages of %s went on at another front end", source.name)
        except asyncio.CancelledError:
            await asyncio.shield(job.later(first=True, yielded=True))
            raise
        except (SockpqError, SqsError) as error:
            logger.warning("the task that moves messages of %s is interrupted: %s", source.name, error)

    async def _step(self, job: Job, source: QueueName, task_id: str) -> bool:
        """Move one portion; returns whether the task has ended."""
        tasks = await self._records.read(source)
        task = next((one for one in tasks if one.id == task_id), None)
        if task is None or not task.is_active:
            return True
        if task.status == "CANCELLING":
            await self._records.update(source, task_id, status="CANCELLED")
            return True
        moved, failure = await self._move(source, task)
        left = task.to_move - task.moved - moved
        ended = failure is not None or not moved or left <= 0
        changes: dict[str, object] = {"moved": task.moved + moved}
        if ended:
            changes |= {"status": "FAILED" if failure else "COMPLETED", "failure": failure}
        await self._records.update(source, task_id, **changes)
        if not ended:
            await job.touch(LEASE_S, "later")
            if task.rate:
                await asyncio.sleep(moved / task.rate)
        return ended

    async def _move(self, source: QueueName, task: Task) -> tuple[int, str | None]:
        """Move a portion; returns how many messages were moved, and why no more can be."""
        wanted = min(task.rate or PORTION_MAX, task.to_move - task.moved)
        moved = 0
        for target, died in await self._targets(source, task):
            if moved >= wanted:
                break
            if await self._registry.find(target, fresh=True) is None:
                return moved, "AWS.SimpleQueueService.NonExistentQueue"
            try:
                result = await self._client.queue_move(source.server, target.server, wanted - moved, died=died)
            except QueueNotFound:       # the dead-letter queue was deleted
                return moved, "AWS.SimpleQueueService.NonExistentQueue"
            moved += result.jobs
            if result.refusal:
                return moved, f"CouldNotMove: {result.refusal}"
        return moved, None

    async def _targets(self, source: QueueName, task: Task) -> list[tuple[QueueName, str | None]]:
        """Return the queues to which messages go, each with the queue in which they must have died, None for any."""
        if task.destination is not None:
            return [(self._names.queue(source.account, task.destination), None)]
        names = await self._registry.sources(source)
        queues = [self._names.queue(source.account, name) for name in names]
        return [(queue, queue.server) for queue in queues]
