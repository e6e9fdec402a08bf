"""Splits commands on many jobs into several operations, proposed one after the other, so that none delays others.

Most commands are one operation. Where PUTS, DONE, LATER or TOUCH would exceed the cost limit of one
(core/handlers/cost.py), each operation takes as many of the jobs as it can, and the answer combines all replies. With
REQ each operation is a part of the request.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from sockpqd.core import (
    OPERATION_BYTES_MAX,
    OPERATION_WORK_MAX,
    Batch,
    BatchNames,
    End,
    JobPut,
    Operation,
    Reply,
    Results,
    Touch,
    cost,
)
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.protocol.responses import BUSY
from sockpqd.gateway.waiting.slots import NoReply, Outcome

Many = Batch | End | Touch


def split(operation: Many, known_work: Callable[[Operation], int]) -> list[Many]:
    """Split an operation into operations within the cost limit; usually just itself. A Batch must not be atomic.

    `known_work`: see Machine.known_work.
    """
    size, work = cost(operation)
    work += known_work(operation)
    if size <= OPERATION_BYTES_MAX and work <= OPERATION_WORK_MAX:
        return [operation]
    if isinstance(operation, Batch):
        return [replace(operation, operations=puts) for puts in _portions(operation, known_work)]
    ids = operation.ids
    assert not isinstance(ids, int)         # of one job it is no work that is to be split
    count = -(-work // OPERATION_WORK_MAX)
    if count == 1 or len(ids) == 1:
        return [operation]
    length = -(-len(ids) // count)
    parts = [replace(operation, ids=ids[start:start + length]) for start in range(0, len(ids), length)]
    return [smaller for part in parts for smaller in split(part, known_work)]       # some are more work than others


def _portions(batch: Batch, known_work: Callable[[Operation], int]) -> Iterable[tuple[JobPut, ...]]:
    """Yield the batch's operations in portions within the cost limit."""
    portion: list[JobPut] = []
    total = total_work = 0
    names = BatchNames()
    for part in batch.operations:
        assert isinstance(part, JobPut)
        size, work = cost(part)
        work += known_work(part)
        total += size
        total_work += work + names.work(part)
        if portion and (total > OPERATION_BYTES_MAX - SPARE or total_work > OPERATION_WORK_MAX - SPARE):
            yield tuple(portion)
            portion, total, total_work = [], size, work
            names = BatchNames()
            names.work(part)
        portion.append(part)
    yield tuple(portion)


SPARE = 1000        # bytes and work left for the operation around the parts
AHEAD = 2           # parts of one command that are proposed at a time: more would fill the memory of the log's queue


def propose_split(
    client: Client, operations: list[Many], tell: Callable[[Reply], Outcome], numbering: Numbering | None,
) -> None:
    """Propose the operations of one command; `tell` turns all results into the answer.

    Only AHEAD of them are in flight at a time, and later commands wait until all of them are proposed.
    """
    slot = Several(client, tell, len(operations), [], numbering is not None)
    client.await_slot(slot)
    parts = [
        _Part(slot, operation if numbering is None else numbering.request(operation, number), number == 0)
        for number, operation in enumerate(operations)
    ]
    for part in parts[:AHEAD]:
        part.propose()
    if len(parts) > AHEAD:
        client.run(_propose_rest(slot, parts[AHEAD:]))


async def _propose_rest(slot: Several, parts: Sequence[_Part]) -> None:
    """Propose the remaining operations, which count as the client's memory until then."""
    client = slot.client
    sizes = [cost(part.operation)[0] for part in parts]
    client.state.parts_bytes = sum(sizes)
    try:
        for settled, (part, size) in enumerate(zip(parts, sizes, strict=True), 1):
            client.weigh()
            await slot.progress(settled)
            last = slot.outcomes[-1]
            if client.rights_changed:
                slot.settle(NoReply.REFUSED)
            elif isinstance(last, Results):
                part.propose()
            else:                           # the others would not be executed either, or should not
                slot.settle(last)
            client.state.parts_bytes -= size
    finally:
        client.state.parts_bytes = 0
        client.weigh()


class Several(Struct, gc=False, eq=False):
    """The slot of a command made of several operations; their outcomes arrive in the order proposed."""

    client: Client
    tell: Callable[[Reply], Outcome]
    open: int                       # operations without an outcome
    outcomes: list[Reply | NoReply | bytes]
    numbered: bool = False
    outcome: Outcome | None = None
    awaited: asyncio.Future[None] | None = None     # the next outcome

    async def progress(self, count: int) -> None:
        """Wait for this many outcomes."""
        while len(self.outcomes) < count:
            self.awaited = asyncio.get_running_loop().create_future()
            try:
                await self.awaited
            finally:
                self.awaited = None

    def settle(self, outcome: Reply | NoReply | bytes) -> None:
        """Record the outcome of the next operation."""
        self.outcomes.append(outcome)
        self.open -= 1
        if self.awaited is not None and not self.awaited.done():
            self.awaited.set_result(None)
        if not self.open:
            self.outcome = self._joined()
            self.client.wake()

    def _joined(self) -> Outcome:
        """Combine the outcomes. After a partial execution neither the results nor "not executed" would be true."""
        outcomes = self.outcomes
        replies = [one for outcome in outcomes if isinstance(outcome, Results) for one in outcome.replies]
        if all(isinstance(outcome, Results) for outcome in outcomes):
            return self.tell(Results(tuple(replies)))
        first = outcomes[0]
        if not replies and all(outcome == first for outcome in outcomes) and first is not NoReply.UNKNOWN:
            return first if isinstance(first, NoReply | bytes) else self.tell(first)
        return NoReply.UNKNOWN_REQUEST if self.numbered else NoReply.UNKNOWN


class _Part(Struct, gc=False, eq=False):
    """The Pending of one of the operations of `slot`."""

    slot: Several
    operation: Operation
    first: bool

    def propose(self) -> None:
        """Propose the operation, or propose it again."""
        client = self.slot.client
        client.over_share = client.hub.cluster.propose_for(client, self.operation, self)

    def applied(self, reply: Reply) -> None:
        """Record that the operation was executed."""
        self.slot.settle(reply)

    def refused(self) -> None:
        """Record that the operation was not executed."""
        self.slot.settle(NoReply.REFUSED)

    def overdue(self) -> None:
        """Propose the operation again, unless the first one was not executed: half a command is of no use."""
        if self.first or BUSY in self.slot.outcomes:
            self.slot.settle(BUSY)
        else:
            self.propose()

    def unknown(self) -> None:
        """Record that the outcome of the operation is unknown."""
        self.slot.settle(NoReply.UNKNOWN)
