"""BEGIN .. COMMIT: commands that are queued, and executed together or not at all (spec/state-machine 9.3).

While a transaction is open other tables say what is done with a command: those that may stand in it are queued, any
other is refused, and so will be the COMMIT: nobody may lose half of a transaction. Where BEGIN itself was refused the
commands behind it are as well, up to COMMIT or ROLLBACK, or up to one that could not stand in a transaction: a client
that sends all of them without waiting must not have a part of them executed, should this node begin to serve meanwhile.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core import (
    Atomic,
    Batch,
    Bury,
    Change,
    Delete,
    Done,
    DoneLast,
    Later,
    LaterWith,
    Move,
    Operation,
    Put,
    PutWith,
    Reply,
    Results,
    Touch,
    cost,
)
from gateway.limits import COMMAND_BYTES, TRANSACTION_BYTES_MAX, TRANSACTION_COMMANDS_MAX, TRANSACTION_WORK_MAX
from gateway.protocol import requests, responses
from gateway.waiting.slots import Fate

if TYPE_CHECKING:
    from gateway.protocol.request_id import Numbering
    from gateway.server.conversation import Conversation

log = logging.getLogger("sockpqd.gateway")

Command = Callable[["Conversation", Any], None]
Table = dict[type, Command]

QUEUEABLE: tuple[type, ...] = (
    Put, PutWith, Done, DoneLast, Later, LaterWith, Move, Change, Delete, Touch, Bury, requests.BuryRequest,
)


def adds_data(operation: Operation) -> bool:
    """Does it take room in memory and on the disk?"""
    if isinstance(operation, Change | Move):
        return operation.data is not None
    return isinstance(operation, Put | PutWith)


class Transaction:
    """The queued commands of a connection, or why their COMMIT will be refused."""

    def __init__(self) -> None:
        self.operations: list[Atomic] = []
        self.refusal: bytes | None = None       # what COMMIT will be answered
        self.adds_data = False
        self.burials: list[requests.BuryRequest] = []
        self._commands = 0
        self._bytes = 0
        self._work = 0

    def queue(self, operation: Atomic) -> bytes:
        """Keep the operation for the COMMIT; returns what is answered to its command."""
        self._commands += 1
        if self.refusal is not None:
            return responses.QUEUED
        size, work = cost(operation)
        self._bytes += size
        self._work += work
        if (
            self._commands > TRANSACTION_COMMANDS_MAX
            or self._bytes > TRANSACTION_BYTES_MAX
            or self._work > TRANSACTION_WORK_MAX
        ):
            return self._refuse(responses.TOO_LARGE)
        self.operations.append(operation)
        self.adds_data = self.adds_data or adds_data(operation)
        return responses.QUEUED

    @property
    def held_bytes(self) -> int:
        """What the queued commands cost."""
        return self._bytes + COMMAND_BYTES * len(self.operations) if self.operations else 0

    def refuse(self, answer: bytes) -> bytes:
        """A command cannot be executed, and so none of them will be."""
        self._commands += 1
        return answer if self.refusal is not None else self._refuse(answer)

    def _refuse(self, answer: bytes) -> bytes:
        self.refusal = responses.aborted(self._commands, answer)
        self.operations.clear()
        return answer


def open_table(at_once: Table, alone: Table) -> Table:
    """The commands while a transaction is open; what keeps a connection alive is executed as ever."""
    def numbered(conversation: Conversation, request: requests.Numbered) -> None:
        if isinstance(request.command, requests.Commit):
            at_once[requests.Numbered](conversation, request)
            conversation.leave_transaction()        # when there is no session nobody has done that yet
        else:
            _not_allowed(conversation, request)
    as_ever = (requests.Commit, requests.Rollback, requests.Ping, requests.Caps)
    closing = (requests.Quit, requests.Broken)
    return {
        **dict.fromkeys((*at_once, *(kind for kind in alone if kind not in closing)), _not_allowed),
        **dict.fromkeys(QUEUEABLE, _queue),
        **{kind: at_once[kind] for kind in as_ever},
        requests.BuryRequest: _queue_bury,
        requests.Refused: _refused,
        requests.Numbered: numbered,
    }


def refused_table(at_once: Table) -> Table:
    """The commands behind a BEGIN that was refused."""
    def end_and(run: Command) -> Command:
        def end(conversation: Conversation, request: Any) -> None:
            conversation.leave_transaction()
            run(conversation, request)
        return end

    def numbered(conversation: Conversation, request: requests.Numbered) -> None:
        conversation.leave_transaction()
        run = _offline if isinstance(request.command, requests.Commit) else at_once[requests.Numbered]
        run(conversation, request)
    return {
        **{kind: end_and(run) for kind, run in at_once.items()},
        **dict.fromkeys(QUEUEABLE, _offline),
        requests.Refused: at_once[requests.Refused],
        requests.Commit: end_and(_offline),
        requests.Rollback: end_and(_offline),
        requests.Numbered: numbered,
    }


def commit(conversation: Conversation, transaction: Transaction, numbering: Numbering | None) -> None:
    """COMMIT of this transaction."""
    def tell(reply: Reply) -> Reply:
        if isinstance(reply, Results):
            for request in transaction.burials:
                log_burial(conversation, request)
        return reply

    cluster = conversation.hub.cluster
    if transaction.refusal is not None:
        conversation.say(transaction.refusal)
    elif transaction.adds_data and cluster.full and cluster.serving:
        conversation.say(responses.BUSY)
    else:
        operations = tuple(transaction.operations)
        if numbering is not None:
            numbering = numbering.covering(operations)
        conversation.propose_told(Batch(operations, atomic=True), tell, numbering)


def _queue(conversation: Conversation, operation: Atomic) -> None:
    assert conversation.transaction is not None
    hub = conversation.hub
    if adds_data(operation) and (hub.cluster.full or hub.account.high):     # what is queued takes room, too
        conversation.say(conversation.transaction.refuse(responses.BUSY))
    else:
        conversation.say(conversation.transaction.queue(operation))


def _queue_bury(conversation: Conversation, request: requests.BuryRequest) -> None:
    assert conversation.transaction is not None
    _queue(conversation, request.bury)
    if conversation.transaction.refusal is None:
        conversation.transaction.burials.append(request)


def log_burial(conversation: Conversation, request: requests.BuryRequest) -> None:
    """Tell the operator why a job is dead."""
    log.info("%s: job %d is dead, %s", conversation.link.peer, request.bury.id, request.reason)


def _not_allowed(conversation: Conversation, request: object) -> None:
    assert conversation.transaction is not None
    conversation.say(conversation.transaction.refuse(responses.BAD_ARGUMENTS))


def _refused(conversation: Conversation, request: requests.Refused) -> None:
    assert conversation.transaction is not None
    conversation.say(conversation.transaction.refuse(request.answer))


def _offline(conversation: Conversation, request: object) -> None:
    conversation.say(Fate.REFUSED)
