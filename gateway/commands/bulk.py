"""Commands that are several operations, one after the other, so that no entry of the log becomes long.

QUEUE PURGE and KICK move or remove a portion of jobs per operation, and QUEUE DELETE .. FORCE purges first. With REQ
each operation is a part of the request: repeated, those that were executed answer as they did, and the sum is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core import Accepted, DeleteQueue, Kick, PurgeQueue, QueueNotFound, Removed, Reply, Requested
from gateway.commands.sessions import propose
from gateway.protocol import requests
from gateway.waiting.slots import Fate

if TYPE_CHECKING:
    from gateway.protocol.request_id import Numbering
    from gateway.server.conversation import Conversation


class _Parts:
    """The operations of one command."""

    def __init__(self, conversation: Conversation, numbering: Numbering | None) -> None:
        self._conversation = conversation
        self._numbering = numbering
        self._part = 0

    async def ask(self, operation: Requested) -> Reply | Fate:
        """Execute the next one. When the command is executed in part already, "not executed" would not be true."""
        numbering, part = self._numbering, self._part
        self._part += 1
        asked = operation if numbering is None else numbering.request(operation, part)
        outcome = await propose(self._conversation.hub.cluster, asked, self._conversation)
        if outcome is Fate.UNKNOWN or (part and outcome is Fate.REFUSED):
            return Fate.UNKNOWN if numbering is None else Fate.UNKNOWN_REQUEST
        return outcome

    async def total(self, portion: Callable[[int], Requested]) -> Reply | Fate:
        """Ask for portions until there are no more; what was removed together, or why that failed.

        `portion(done)` is the next operation when so many were removed.
        """
        count = 0
        while True:
            outcome = await self.ask(portion(count))
            if not isinstance(outcome, Removed):
                return outcome
            count += outcome.count
            if not outcome.more or not outcome.count:
                return Removed(count)


class _Purge:
    """The portions of a PURGE: jobs that came after the first of them are not meant."""

    def __init__(self, conversation: Conversation, request: requests.PurgeRequest) -> None:
        self._machine = conversation.hub.cluster.machine
        self._request = request
        self._before_seq: int | None = None

    def portion(self, done: int) -> PurgeQueue:
        """The first operation takes what it finds at its place in the log."""
        if done and self._before_seq is None:
            self._before_seq = self._machine.next_seq
        return PurgeQueue(self._request.queue, self._request.state, self._before_seq)


async def purge(conversation: Conversation, request: requests.PurgeRequest, numbering: Numbering | None) -> None:
    """QUEUE PURGE."""
    conversation.say(await _Parts(conversation, numbering).total(_Purge(conversation, request).portion))


async def drop(conversation: Conversation, request: requests.DropQueue, numbering: Numbering | None) -> None:
    """QUEUE DELETE .. FORCE: the running jobs, and what came meanwhile, end with the queue.

    A queue without settings has gone already when it was purged; that it was there is known from then.
    """
    parts = _Parts(conversation, numbering)
    outcome = await parts.total(_Purge(conversation, requests.PurgeRequest(request.queue, None)).portion)
    if isinstance(outcome, Removed):
        outcome = await parts.total(lambda done: DeleteQueue(request.queue, force=True))
        if isinstance(outcome, QueueNotFound):
            outcome = Accepted()
    conversation.say(outcome)


async def kick(conversation: Conversation, request: Kick, numbering: Numbering | None) -> None:
    """KICK of more jobs than one operation moves."""
    def portion(done: int) -> Kick:
        return Kick(request.queue, request.count - done)
    conversation.say(await _Parts(conversation, numbering).total(portion))
