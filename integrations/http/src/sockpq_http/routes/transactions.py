"""Transactions: a list of operations that are executed together, or not at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator
from sockpq import BadArguments, Finished, Key, Number, Place, Stored
from sockpq.aio import Transaction
from starlette.responses import Response

from sockpq_http.exchange.caller import Calling, answer, given, replay
from sockpq_http.exchange.views import FinishedView, StoredView, finished_view, stored_view
from sockpq_http.idempotency.key import Key as IdempotencyKey
from sockpq_http.idempotency.marker import Subject
from sockpq_http.limits import OPERATIONS_MAX
from sockpq_http.routes.items import NewHold
from sockpq_http.routes.jobs import Publish, PutTo
from sockpq_http.routes.running import Bury, Change, Done, Later, Move, Touch, change_options
from sockpq_http.values import times
from sockpq_http.values.ids import Id, Seq, Shown
from sockpq_http.values.model import Model, Replayable, View
from sockpq_http.values.patterns import KEY, NAME
from sockpq_http.values.puts import PutJob
from sockpq_http.values.times import Time

Name = Annotated[str, Field(pattern=NAME)]


class PutOperation(PutJob):
    """Put a job."""

    op: Literal["put"]
    queue: Name


class PutToOperation(PutTo):
    """Put a job into several queues."""

    op: Literal["put_to"]


class PublishOperation(Publish):
    """Put a job into all queues that are bound to a topic."""

    op: Literal["publish"]
    topic: Name


class DoneOperation(Done):
    """Finish a running job."""

    op: Literal["done"]
    id: Id


class LaterOperation(Later):
    """Put a running job back."""

    op: Literal["later"]
    id: Id


class TouchOperation(Touch):
    """Renew the lease of a running job."""

    op: Literal["touch"]
    id: Id


class BuryOperation(Bury):
    """Give up a running job."""

    op: Literal["bury"]
    id: Id


class MoveOperation(Move):
    """Finish a running job here and put it into another queue."""

    op: Literal["move"]
    id: Id


class Selected(Model):
    """A job by one of: its id, its number, its queue with its key, its queue with its place."""

    id: Id | None = None
    number: Id | None = None
    queue: Name | None = None
    key: Annotated[str, Field(pattern=KEY)] | None = None
    place: Seq | None = None

    @model_validator(mode="after")
    def _one_way(self) -> Selected:
        ways = [self.id, self.number, self.key, self.place]
        if sum(way is not None for way in ways) != 1:
            raise ValueError("choose the job by one of id, number, key and place")
        if (self.queue is None) != (self.key is None and self.place is None):
            raise ValueError("a key and a place need the queue, an id and a number have none")
        return self

    def selector(self, ids: Mapping[str, int]) -> int | Key | Place | Number:
        """Return the job as the client has it; `ids` has the ids and numbers as the client has them."""
        if self.id is not None:
            return ids[self.id]
        if self.number is not None:
            return Number(ids[self.number])
        if self.key is not None:
            return Key(self.queue or "", self.key)
        return Place(self.queue or "", int(self.place or "0"))


class ChangeOperation(Change, Selected):
    """Change a job."""

    op: Literal["change"]


class DeleteOperation(Selected):
    """Remove a job."""

    op: Literal["delete"]
    untaken: bool = Field(default=False, description="With a number: not while it is running.")


class KickOperation(Selected):
    """Make a dead, buried or delayed job ready, by its number or place."""

    op: Literal["kick"]


class HoldOperation(NewHold):
    """Hold an item, by default a new one."""

    op: Literal["item_hold"]
    item: Name | None = None


class ReleaseOperation(Model):
    """End the hold of an item."""

    op: Literal["item_release"]
    item: Name


Operation = Annotated[
    PutOperation | PutToOperation | PublishOperation | DoneOperation | LaterOperation | TouchOperation | BuryOperation
    | MoveOperation | ChangeOperation | DeleteOperation | KickOperation | HoldOperation | ReleaseOperation,
    Field(discriminator="op"),
]


class Operations(Model):
    """Operations that are executed together, or not at all."""

    operations: list[Operation] = Field(min_length=1, max_length=OPERATIONS_MAX)


class ResultView(View):
    """The result of one operation; properties that do not apply to it are left out."""

    op: str
    stored: StoredView | None = None
    finished: FinishedView | None = None
    count: int | None = None
    expires_at: Time | None = None
    item: str | None = None
    item_done: bool | None = None


class ResultsView(Replayable):
    """The results of a transaction, in the order of its operations."""

    results: list[ResultView] | None = None


async def execute(caller: Calling, wanted: Operations, key: IdempotencyKey = None) -> Response:
    """Execute all operations, or none of them.

    409 with the number of the operation that would be refused, and the reason; then nothing has changed.
    """
    operations = wanted.operations
    named = {getattr(one, field, None) for one in operations for field in ("id", "number")}
    ids = {text: await caller.id(text) for text in named if isinstance(text, str)}

    def collect(transaction: Transaction) -> None:
        for operation in operations:
            _add(transaction, operation, ids)

    if key is not None:
        results = await caller.once(key, collect, _subject(operations, ids))
        if results is None:
            return replay(ResultsView)
    else:
        async with caller.client.transaction() as transaction:
            collect(transaction)
        results = transaction.results
    return answer(ResultsView(results=[
        _result(operation.op, result, caller.client.id_text)
        for operation, result in zip(operations, results, strict=True)
    ]))


def _subject(operations: list[Any], ids: Mapping[str, int]) -> Subject:
    """Return the first name, or job, of the operations: all belong to one cluster."""
    for operation in operations:
        named = [getattr(operation, field, None) for field in ("id", "number", "queue", "topic", "queues", "item")]
        for name in (one for one in named if isinstance(one, str | list)):
            return name[0] if isinstance(name, list) else ids.get(name, name)
    return None


def _add(transaction: Transaction, operation: Any, ids: Mapping[str, int]) -> None:
    """Add an operation to the transaction; `ids`: as the client has them. Raises BadArguments."""
    match operation:
        case PutOperation():
            transaction.put(operation.queue, **operation.arguments())
        case PutToOperation():
            transaction.put_to(operation.queues, **operation.arguments())
        case PublishOperation():
            transaction.publish(operation.topic, **operation.arguments(), **given(route=operation.route))
        case DoneOperation() | LaterOperation() | BuryOperation():
            getattr(transaction, operation.op)(ids[operation.id], **_options(operation))
        case TouchOperation():
            options = _options(operation)
            options |= {"expire": options.pop("lease")} if "lease" in options else {}
            transaction.touch(ids[operation.id], **options)
        case MoveOperation():
            options = given(priority=operation.priority, delay=operation.delay, at=operation.at)
            transaction.move(ids[operation.id], operation.queue, data=operation.data(),
                             headers=operation.header_fields(), **options)
        case ChangeOperation():
            transaction.change(operation.selector(ids), **change_options(operation))
        case DeleteOperation():
            transaction.delete(operation.selector(ids), untaken=operation.untaken)
        case KickOperation():
            _kick(transaction, operation.selector(ids))
        case HoldOperation():
            transaction.item_hold(operation.item, **given(
                expire=operation.expire, then=operation.then, queue=operation.queue))
        case ReleaseOperation():
            transaction.item_release(operation.item)


def _kick(transaction: Transaction, job: int | Key | Place | Number) -> None:
    if not isinstance(job, Number | Place):
        raise BadArguments("kick is for a job by its number or its place")
    transaction.kick_job(job)


def _options(operation: Model) -> dict[str, Any]:
    return operation.model_dump(exclude_unset=True, exclude_none=True, exclude={"op", "id"})


def _result(op: str, result: Any, shown: Shown) -> ResultView:
    match result:
        case Stored():
            return ResultView(op=op, stored=stored_view(result, shown))
        case Finished():
            return ResultView(op=op, finished=finished_view(result))
        case bool():
            return ResultView(op=op, item_done=result)
        case str():
            return ResultView(op=op, item=result)
        case int() if op == "touch":
            return ResultView(op=op, **given(expires_at=times.shown(result)))
        case int():
            return ResultView(op=op, count=result)
    return ResultView(op=op)
