"""Commands executed as several operations, one after the other, so that no log entry takes long.

QUEUE PURGE, QUEUE MOVE, KICK and ITEM RETRY remove or move one portion of jobs per operation, and QUEUE DELETE .. FORCE
purges first. With REQ each operation is a part of the request: when it is repeated, the parts already executed give the
same replies, and the total is the same. If its user's rights change in between, no more operations follow, and the
outcome is unknown.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET
from msgspec.structs import replace

from sockpqd.core import (
    Accepted,
    DeleteQueue,
    Kick,
    Moved,
    MoveJobs,
    Purged,
    PurgeQueue,
    QueueNotFound,
    Removed,
    Reply,
    Requested,
    RetryItem,
)
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.proposing import propose
from sockpqd.gateway.limits import PORTION_MAX
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.waiting.slots import NoReply


class _Parts:
    """Executes the operations of one command in sequence."""

    def __init__(self, client: Client, numbering: Numbering | None) -> None:
        self._client = client
        self._numbering = numbering
        self._part = 0

    async def ask(self, operation: Requested) -> Reply | NoReply:
        """Execute the next operation, unless the user's rights have changed since the first.

        Once a part has been executed, a refusal becomes "outcome unknown".
        """
        client, numbering, part = self._client, self._numbering, self._part
        self._part += 1
        asked = operation if numbering is None else numbering.request(operation, part)
        if part and client.rights_changed:
            outcome: Reply | NoReply = NoReply.REFUSED
        else:
            outcome = await propose(client.hub.cluster, asked, client)
        if outcome is NoReply.UNKNOWN or (part and outcome is NoReply.REFUSED):
            return NoReply.UNKNOWN if numbering is None else NoReply.UNKNOWN_REQUEST
        return outcome

    async def total(self, portion: Callable[[int, Removed], Requested]) -> Reply | NoReply:
        """Execute portions until none are left; return the total removed, or why one failed.

        `portion(done, last)` is the next operation after `done` jobs have been removed; `last`: the previous reply.
        """
        count, outcome = 0, Removed(0)
        while True:
            reply = await self.ask(portion(count, outcome))
            if not isinstance(reply, Removed):
                return reply
            outcome = reply
            count += outcome.count
            if not outcome.more or not outcome.count:
                return Removed(count)


class _Purge:
    """The portions of a PURGE, limited to jobs that were there when the first was executed."""

    def __init__(self, client: Client, purge: PurgeQueue) -> None:
        self._machine = client.hub.cluster.machine
        self._purge = purge

    def portion(self, done: int, last: Removed) -> PurgeQueue:
        """Return the next operation; only the first sees all jobs at its place in the log."""
        purge = self._purge
        if done and purge.before_seq is None:
            purge = replace(purge, before_seq=self._machine.next_seq, before_id=self._machine.next_id)
            self._purge = purge
        return purge


def purge(client: Client, command: Command) -> None:
    """QUEUE PURGE: remove jobs of a queue in portions."""
    client.run(_run_purge(client, command.operation, command.numbering))


async def _run_purge(client: Client, purge: PurgeQueue, numbering: Numbering | None) -> None:
    client.say(await _Parts(client, numbering).total(_Purge(client, purge).portion))


def delete_queue(client: Client, command: Command) -> None:
    """QUEUE DELETE: delete an empty queue, or with FORCE any queue."""
    delete: DeleteQueue = command.operation
    if delete.force:
        client.run(_run_delete(client, delete, command.numbering))
    else:
        client.propose(delete, command.numbering)


async def _run_delete(client: Client, delete: DeleteQueue, numbering: Numbering | None) -> None:
    """QUEUE DELETE .. FORCE: purge the queue, then delete it with running jobs and those added in the meantime.

    A queue without settings disappears as soon as it is purged; the purge has shown that it existed.
    """
    parts = _Parts(client, numbering)
    all_of_it = PurgeQueue(delete.queue, Purged.OWN if delete.leave else Purged.ALL)
    outcome = await parts.total(_Purge(client, all_of_it).portion)
    if isinstance(outcome, Removed):
        outcome = await parts.total(lambda done, last: delete)
        if isinstance(outcome, QueueNotFound):
            outcome = Accepted()
    client.say(outcome)


def kick(client: Client, command: Command) -> None:
    """KICK: move dead jobs back to their queue, or make jobs of the queue READY."""
    count = command.operation.count
    if count > PORTION_MAX or (count > 1 and command.operation.here):     # they may have much data
        client.run(_run_kick(client, command.operation, command.numbering))
    else:
        client.propose(command.operation, command.numbering)


async def _run_kick(client: Client, kick: Kick, numbering: Numbering | None) -> None:
    """Execute a KICK of more jobs than one operation can move. With HERE, all must have the state of the first ones."""
    def portion(done: int, last: Removed) -> Kick:
        return replace(kick, count=kick.count - done, buried=None if last.buried is UNSET else last.buried)
    client.say(await _Parts(client, numbering).total(portion))


def move(client: Client, command: Command) -> None:
    """QUEUE MOVE: put the READY jobs of a queue into another one, in portions."""
    client.run(_run_moves(client, command.operation, _rest_to_move, command.numbering))


def retry(client: Client, command: Command) -> None:
    """ITEM RETRY: kick the dead and buried jobs of an item in portions."""
    client.run(_run_moves(client, command.operation, _rest_to_retry, command.numbering))


async def _run_moves(
    client: Client, operation: Requested, rest: Callable[[Any, Moved], Requested], numbering: Numbering | None
) -> None:
    """Execute portions of an operation until nothing is left; `rest`: returns the operation after a portion."""
    parts, moved = _Parts(client, numbering), 0
    while True:
        reply = await parts.ask(operation)
        if not isinstance(reply, Moved):
            client.say(reply)
            return
        moved += reply.count
        if not reply.left:
            client.say(Moved(moved, refusal=reply.refusal))
            return
        operation = rest(operation, reply)


def _rest_to_retry(retry: RetryItem, reply: Moved) -> RetryItem:
    return replace(retry, left=reply.left)


def _rest_to_move(move: MoveJobs, reply: Moved) -> MoveJobs:
    return replace(move, count=move.count - reply.count, left=reply.left, behind=reply.behind)
