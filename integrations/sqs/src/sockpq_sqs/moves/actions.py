"""The actions on tasks that move dead letters: start, cancel and list."""

from __future__ import annotations

import uuid
from collections.abc import Callable

from msgspec.structs import replace

from sockpq_sqs.call import Call
from sockpq_sqs.model import answers, requests
from sockpq_sqs.model.errors import SqsError, invalid, no_resource, wrong
from sockpq_sqs.moves.records import Records, Work
from sockpq_sqs.moves.task import Task, TaskHandle, handle_of
from sockpq_sqs.queues import backing
from sockpq_sqs.queues.names import Names, QueueName
from sockpq_sqs.queues.registry import Registry

RATE_MAX = 500          # Amazon's, messages a second
LISTED_MAX = 10


class MoveActions:
    """Executes the requests about tasks."""

    def __init__(self, names: Names, registry: Registry, records: Records, clock: Callable[[], float]) -> None:
        self._names = names
        self._registry = registry
        self._records = records
        self._clock = clock

    async def start(
        self, call: Call, request: requests.StartMessageMoveTaskRequest,
    ) -> answers.StartMessageMoveTaskAnswer:
        """Begin to move the dead letters of a queue back, or to another queue."""
        rate = request.max_number_of_messages_per_second
        if rate is not None and not 1 <= rate <= RATE_MAX:
            raise wrong(rate, "MaxNumberOfMessagesPerSecond", f"Must be between 1 and {RATE_MAX}, if provided.")
        source = await self._queue(request.source_arn, "SourceArn")
        if not await self._registry.sources(source):
            raise invalid("Source queue must be configured as a Dead Letter Queue.")
        destination = None
        if request.destination_arn is not None:
            destination = await self._queue(request.destination_arn, "DestinationArn")
            self._check_destination(request.destination_arn, source, destination)
            await backing.check_right(call, destination)
        waiting = await backing.ready(call, source)
        task = Task(
            id=str(uuid.uuid4()), source=source.name, started_ms=int(self._clock() * 1000), to_move=waiting,
            destination=destination.name if destination else None, rate=rate,
        )

        lost = [one.id for one in await self._records.read(source) if await self._records.is_lost(one)]

        def add(tasks: list[Task]) -> list[Task]:
            tasks = [replace(one, status="FAILED", failure="Lost") if one.id in lost else one for one in tasks]
            if any(one.is_active for one in tasks):
                raise invalid(
                    "There is already a task running. Only one active task is allowed for a source queue arn at a "
                    "given time."
                )
            return [task, *tasks]

        await self._records.change(source, add, Work(source.account, source.name, task.id))
        return answers.StartMessageMoveTaskAnswer(
            task_handle=TaskHandle(task.id, source.arn(call.region)).encode(),
        )

    def _check_destination(self, arn: str, source: QueueName, destination: QueueName) -> None:
        if destination == source:
            raise invalid("Source queue arn and destination queue arn cannot be the same.")
        if destination.account != source.account:
            raise wrong(arn, "DestinationArn", "The destination must be a queue of the same account.")
        if destination.is_fifo != source.is_fifo:
            raise wrong(arn, "DestinationArn", "The destination must be of the same type as the source.")

    async def cancel(
        self, call: Call, request: requests.CancelMessageMoveTaskRequest,
    ) -> answers.CancelMessageMoveTaskAnswer:
        """Stop moving. What was moved stays where it is."""
        handle = handle_of(request.task_handle)
        source = await self._queue(handle.source_arn, "SourceArn")
        await backing.check_right(call, source)
        found: Task | None = None

        def cancel(tasks: list[Task]) -> list[Task]:
            nonlocal found
            found = next((one for one in tasks if one.id == handle.id), None)
            if found is None:
                raise SqsError("ResourceNotFoundException", "Task does not exist.", 404)
            if found.status != "RUNNING":
                raise invalid("Only active tasks can be cancelled.")
            return [replace(one, status="CANCELLING") if one.id == handle.id else one for one in tasks]

        await self._records.change(source, cancel)
        return answers.CancelMessageMoveTaskAnswer(approximate_number_of_messages_moved=found.moved if found else 0)

    async def list(
        self, call: Call, request: requests.ListMessageMoveTasksRequest,
    ) -> answers.ListMessageMoveTasksAnswer:
        """List the newest tasks of a queue."""
        count = request.max_results
        if count is not None and not 1 <= count <= LISTED_MAX:
            raise wrong(count, "MaxResults", f"Must be between 1 and {LISTED_MAX}, if provided.")
        source = await self._queue(request.source_arn, "SourceArn")
        await backing.check_any_right(call, source)
        tasks = (await self._records.read(source))[: count or 1]
        return answers.ListMessageMoveTasksAnswer(results=[self._shown(call, source, task) for task in tasks])

    def _shown(self, call: Call, source: QueueName, task: Task) -> answers.MoveTask:
        arn = source.arn(call.region)
        destination = self._names.queue(source.account, task.destination) if task.destination else None
        return answers.MoveTask(
            task_handle=TaskHandle(task.id, arn).encode() if task.status == "RUNNING" else None, status=task.status,
            source_arn=arn, destination_arn=destination.arn(call.region) if destination else None,
            max_number_of_messages_per_second=task.rate, approximate_number_of_messages_moved=task.moved,
            approximate_number_of_messages_to_move=task.to_move, failure_reason=task.failure,
            started_timestamp=task.started_ms,
        )

    async def queue_deleted(self, queue: QueueName) -> None:
        """End and forget the tasks of a queue that was deleted."""
        await self._records.forget(queue)

    async def _queue(self, arn: str, parameter: str) -> QueueName:
        queue = self._names.of_arn(arn)
        if queue is None or await self._registry.find(queue, fresh=True) is None:
            raise no_resource(parameter)
        return queue
