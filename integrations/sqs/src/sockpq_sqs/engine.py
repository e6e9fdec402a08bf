"""The engine: executes the requests of SQS on a cluster. The door reads and verifies them first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from types import TracebackType
from typing import Any

from msgspec import Struct
from sockpq import SockpqError
from sockpq.aio import Client

from sockpq_sqs.call import Call
from sockpq_sqs.failures import sqs_error
from sockpq_sqs.messages.finishing import Finishing
from sockpq_sqs.messages.identity import Identity
from sockpq_sqs.messages.receiving import Receiving
from sockpq_sqs.messages.sending import Sending
from sockpq_sqs.moves.actions import MoveActions
from sockpq_sqs.moves.mover import Mover
from sockpq_sqs.moves.records import Records
from sockpq_sqs.options import Options
from sockpq_sqs.queues.actions import QueueActions
from sockpq_sqs.queues.labels import LabelActions
from sockpq_sqs.queues.names import Names
from sockpq_sqs.queues.registry import Registry

Handler = Callable[[Call, Any], Awaitable[Struct]]


class Engine:
    """Executes requests: `async with Engine(client) as engine: answer = await engine.handle(call)`.

    Within the block it also carries out tasks that move dead letters, of this and of other front ends.
    """

    def __init__(self, client: Client, options: Options | None = None, clock: Callable[[], float] = time.time) -> None:
        """`client`: the front end's own, for commands that no sender may send. `clock`: the Unix time in seconds.

        It needs the rights `put`, `get` and `queue`, for the registry of queues, for messages that are deleted after
        their visibility timeout, and for tasks that move messages.
        """
        options = options or Options()
        names = Names(options)
        registry, identity, records = Registry(client, names), Identity(client), Records(client)
        queues = QueueActions(names, registry, options, clock)
        labels = LabelActions(names, registry, queues)
        sending = Sending(names, registry, identity, options)
        receiving = Receiving(names, registry, identity, clock)
        finishing = Finishing(client, names, registry, identity, clock)
        moves = MoveActions(names, registry, records, clock)
        queues.deleted = moves.queue_deleted
        self._mover = Mover(client, names, registry, records)
        self._moving: asyncio.Task[None] | None = None
        self._handlers: dict[str, Handler] = {
            "AddPermission": labels.add_permission,
            "CancelMessageMoveTask": moves.cancel,
            "ChangeMessageVisibility": finishing.change,
            "ChangeMessageVisibilityBatch": finishing.change_batch,
            "CreateQueue": queues.create,
            "DeleteMessage": finishing.delete,
            "DeleteMessageBatch": finishing.delete_batch,
            "DeleteQueue": queues.delete,
            "GetQueueAttributes": queues.attributes,
            "GetQueueUrl": queues.url,
            "ListDeadLetterSourceQueues": queues.sources,
            "ListMessageMoveTasks": moves.list,
            "ListQueueTags": labels.tags,
            "ListQueues": queues.list,
            "PurgeQueue": queues.purge,
            "ReceiveMessage": receiving.receive,
            "RemovePermission": labels.remove_permission,
            "SendMessage": sending.send,
            "SendMessageBatch": sending.send_batch,
            "SetQueueAttributes": queues.set_attributes,
            "StartMessageMoveTask": moves.start,
            "TagQueue": labels.tag,
            "UntagQueue": labels.untag,
        }

    async def handle(self, call: Call) -> Struct:
        """Execute a request and return the answer of its action. Raises SqsError.

        A cancelled ReceiveMessage takes no message: one that it was about to get goes back to its place.
        """
        try:
            return await self._handlers[call.action](call, call.request)
        except SockpqError as error:
            raise sqs_error(error, call.user.name) from error

    async def __aenter__(self) -> Engine:
        moving: Coroutine[Any, Any, None] = self._mover.run()
        self._moving = asyncio.create_task(moving)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._moving:
            self._moving.cancel()
            await asyncio.gather(self._moving, return_exceptions=True)
            self._moving = None
