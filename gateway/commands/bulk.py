"""Commands that are several operations, one after the other, so that no entry of the log becomes long.

QUEUE PURGE and KICK move or remove a portion of jobs per operation, and QUEUE DELETE .. FORCE purges first. With REQ
each operation is a part of the request: repeated, those that were executed answer as they did, and the sum is the same.
"""

from __future__ import annotations

from collections.abc import Callable

from core import Accepted, DeleteQueue, Kick, PurgeQueue, QueueNotFound, Removed, Reply, Requested
from gateway.commands.client import Client
from gateway.commands.proposing import propose
from gateway.limits import PORTION_MAX
from gateway.protocol.command import Command
from gateway.protocol.request_id import Numbering
from gateway.waiting.slots import Fate


class _Parts:
    """The operations of one command."""

    def __init__(self, client: Client, numbering: Numbering | None) -> None:
        self._client = client
        self._numbering = numbering
        self._part = 0

    async def ask(self, operation: Requested) -> Reply | Fate:
        """Execute the next one. When the command is executed in part already, "not executed" would not be true."""
        numbering, part = self._numbering, self._part
        self._part += 1
        asked = operation if numbering is None else numbering.request(operation, part)
        outcome = await propose(self._client.hub.cluster, asked, self._client)
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

    def __init__(self, client: Client, purge: PurgeQueue) -> None:
        self._machine = client.hub.cluster.machine
        self._purge = purge
        self._before_seq: int | None = None

    def portion(self, done: int) -> PurgeQueue:
        """The first operation takes what it finds at its place in the log."""
        if done and self._before_seq is None:
            self._before_seq = self._machine.next_seq
        return PurgeQueue(self._purge.queue, self._purge.state, self._before_seq)


def purge(client: Client, command: Command) -> None:
    """QUEUE PURGE."""
    client.run(_run_purge(client, command.operation, command.numbering))


async def _run_purge(client: Client, purge: PurgeQueue, numbering: Numbering | None) -> None:
    client.say(await _Parts(client, numbering).total(_Purge(client, purge).portion))


def delete_queue(client: Client, command: Command) -> None:
    """QUEUE DELETE."""
    if command.operation.force:
        client.run(_run_delete(client, command.operation.queue, command.numbering))
    else:
        client.propose(command.operation, command.numbering)


async def _run_delete(client: Client, queue: str, numbering: Numbering | None) -> None:
    """QUEUE DELETE .. FORCE: the running jobs, and what came meanwhile, end with the queue.

    A queue without settings has gone already when it was purged; that it was there is known from then.
    """
    parts = _Parts(client, numbering)
    outcome = await parts.total(_Purge(client, PurgeQueue(queue, None)).portion)
    if isinstance(outcome, Removed):
        outcome = await parts.total(lambda done: DeleteQueue(queue, force=True))
        if isinstance(outcome, QueueNotFound):
            outcome = Accepted()
    client.say(outcome)


def kick(client: Client, command: Command) -> None:
    """KICK."""
    if command.operation.count > PORTION_MAX:
        client.run(_run_kick(client, command.operation, command.numbering))
    else:
        client.propose(command.operation, command.numbering)


async def _run_kick(client: Client, kick: Kick, numbering: Numbering | None) -> None:
    """KICK of more jobs than one operation moves."""
    def portion(done: int) -> Kick:
        return Kick(kick.queue, kick.count - done)
    client.say(await _Parts(client, numbering).total(portion))
