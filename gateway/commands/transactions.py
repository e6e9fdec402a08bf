"""BEGIN .. COMMIT: commands that are queued, and executed together or not at all (spec/state-machine 9.3).

While a transaction is open its mode says what is done with a command: those that may stand in it are queued, any
other is refused, and so will be the COMMIT: nobody may lose half of a transaction. Where BEGIN itself was refused the
commands behind it are as well, up to COMMIT or ROLLBACK, or up to one that could not stand in a transaction: a client
that sends all of them without waiting must not have a part of them executed, should this node begin to serve meanwhile.
"""

from __future__ import annotations

import logging

from core import Batch, Reply, Results
from gateway.commands.client import Client
from gateway.commands.client_state import Run
from gateway.commands.in_session import in_session
from gateway.commands.transaction import Transaction, adds_data
from gateway.protocol import responses
from gateway.protocol.command import Command, InTransaction
from gateway.protocol.request_id import Numbering
from gateway.waiting.slots import Fate

log = logging.getLogger("sockpqd.gateway")


def begin(client: Client, command: Command) -> None:
    """BEGIN."""
    if client.hub.cluster.serving:
        client.state.enter_transaction(while_open, Transaction())
        client.say(responses.OK)
    else:
        client.state.enter_transaction(behind_refused_begin, None)
        client.say(Fate.REFUSED)


def rollback(client: Client, command: Command) -> None:
    """ROLLBACK."""
    client.say(responses.BAD_ARGUMENTS if client.state.leave_transaction() is None else responses.OK)


def while_open(command: Command) -> Run | None:
    """What is done with a command while a transaction is open."""
    where = command.row.in_transaction
    numbered = command.number and not command.row.alone
    if where is InTransaction.CLOSES:
        return None
    if where is InTransaction.QUEUED and not numbered:
        return _queue
    if where is InTransaction.AS_EVER or (where is InTransaction.ENDS and not numbered):
        return command.row.run
    return _commit_numbered if where is InTransaction.ENDS else _not_allowed


def behind_refused_begin(command: Command) -> Run | None:
    """What is done with a command behind a BEGIN that was refused."""
    row = command.row
    if row.alone:
        return None
    if row.in_transaction is InTransaction.ENDS:
        return _end_offline
    if command.answer is not None:
        return row.run
    return _offline if row.in_transaction is InTransaction.QUEUED and not command.number else _end_and_run


def _end_offline(client: Client, command: Command) -> None:
    client.state.leave_transaction()
    _offline(client, command)


def _end_and_run(client: Client, command: Command) -> None:
    client.state.leave_transaction()
    if command.number or command.bound:
        in_session(client, command)
    else:
        command.row.run(client, command)


def _commit_numbered(client: Client, command: Command) -> None:
    in_session(client, command)
    client.state.leave_transaction()          # when there is no session nobody has done that yet


def commit(client: Client, command: Command) -> None:
    """COMMIT, which ends the transaction in any case."""
    transaction = client.state.leave_transaction()
    if transaction is None:
        client.say(responses.BAD_ARGUMENTS)
    else:
        _commit(client, transaction, command.numbering)


def _commit(client: Client, transaction: Transaction, numbering: Numbering | None) -> None:
    def tell(reply: Reply) -> Reply:
        if isinstance(reply, Results):
            for burial in transaction.burials:
                log_burial(client, burial)
        return reply

    cluster = client.hub.cluster
    if transaction.refusal is not None:
        client.say(transaction.refusal)
    elif transaction.adds_data and cluster.full and cluster.serving:
        client.say(responses.BUSY)
    else:
        operations = tuple(transaction.operations)
        if numbering is not None:
            numbering = numbering.covering(operations)
        client.propose_told(Batch(operations, atomic=True), tell, numbering)


def _queue(client: Client, command: Command) -> None:
    transaction, hub, operation = client.state.transaction, client.hub, command.operation
    assert transaction is not None
    if adds_data(operation) and (hub.cluster.full or hub.account.high):     # what is queued takes room, too
        client.say(transaction.refuse(responses.BUSY))
        return
    client.say(transaction.queue(operation))
    if command.arguments and transaction.refusal is None:       # of those commands only BURY has any: a reason
        transaction.burials.append(command)


def log_burial(client: Client, command: Command) -> None:
    """Tell the operator why a job is dead."""
    log.info("%s: job %d is dead, %s", client.link.peer, command.operation.id, command.arguments[0])


def _not_allowed(client: Client, command: Command) -> None:
    assert client.state.transaction is not None
    client.say(client.state.transaction.refuse(command.answer or responses.BAD_ARGUMENTS))


def _offline(client: Client, command: Command) -> None:
    client.say(Fate.REFUSED)
