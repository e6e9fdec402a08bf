"""BEGIN .. COMMIT: queued commands, executed together or not at all (spec/state-machine 9.3).

While a transaction is open, its mode decides how a command is run: commands allowed in a transaction are queued; any
other is refused, and then so is the COMMIT, since a transaction must never be executed in part. If BEGIN itself was
refused, so are the commands after it, up to COMMIT or ROLLBACK, or up to a command not allowed in a transaction: a
client that pipelines all of them must not have some of them executed because this node has begun to serve in the
meantime.
"""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from sockpqd.core import Atomic, Batch, Delete, End, HoldItem, How, Reply, Results, RunningJob
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.client_state import ClientState, Run
from sockpqd.gateway.commands.context.in_session import in_session
from sockpqd.gateway.commands.context.putting import user_of
from sockpqd.gateway.commands.context.transaction import Transaction, data_bytes, text_of, without_text
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command, InTransaction
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.waiting.slots import NoReply

_Operation = TypeVar("_Operation", bound=Atomic)


def begin(client: Client, command: Command) -> None:
    """BEGIN: collect the next commands, up to COMMIT or ABORT."""
    if client.hub.cluster.serving:
        client.state.enter_transaction(while_open, Transaction())
        client.say(responses.OK)
    else:
        client.state.enter_transaction(behind_refused_begin, None)
        client.say(NoReply.REFUSED)


def rollback(client: Client, command: Command) -> None:
    """ROLLBACK: discard the open transaction."""
    client.say(_no_begin("ROLLBACK") if client.state.leave_transaction() is None else responses.OK)


def _no_begin(word: str) -> bytes:
    return responses.bad_arguments(f"{word} without BEGIN")


def not_between(command: Command) -> bytes:
    """The answer to a command that cannot be part of a transaction, or must not have its own request number there."""
    if command.number and command.row.in_transaction is InTransaction.QUEUED:
        return responses.bad_arguments("between BEGIN and COMMIT no command can have REQ")
    return responses.bad_arguments(f"{command.row.word.decode()} cannot stand between BEGIN and COMMIT")


def while_open(command: Command) -> Run | None:
    """Decide how to run a command while a transaction is open."""
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
    """Decide how to run a command after a BEGIN that was refused."""
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
    client.state.leave_transaction()          # without a session, COMMIT did not get to do this


def commit(client: Client, command: Command) -> None:
    """COMMIT: execute the queued commands; ends the transaction in any case."""
    transaction = client.state.leave_transaction()
    if transaction is None:
        client.say(_no_begin("COMMIT"))
    else:
        _commit(client, transaction, command.numbering)


def _commit(client: Client, transaction: Transaction, numbering: Numbering | None) -> None:
    def tell(reply: Reply) -> Reply:
        if isinstance(reply, Results):
            for end in transaction.reasoned:
                log_end(client, end)
        return reply

    cluster = client.hub.cluster
    if transaction.refusal is not None:
        client.say(transaction.refusal)
    elif client.hub.access.required and (refusal := transaction.refusal_meanwhile(client.guard)) is not None:
        client.say(refusal)
    elif transaction.adds_data and cluster.full and cluster.serving:
        client.say(responses.BUSY)
    else:
        operations = transaction.operations
        if numbering is not None:
            numbering = numbering.covering(operations)
        if cluster.full and cluster.serving:
            operations = tuple(map(without_text, operations))
        operations = tuple([owned(client, operation) for operation in operations])
        client.propose_mapped(Batch(operations, atomic=True, user=user_of(client)), tell, numbering)


def _queue(client: Client, command: Command) -> None:
    transaction, hub, operation = client.state.transaction, client.hub, command.operation
    assert transaction is not None
    full = hub.account.high or (hub.cluster.full and text_of(operation) is None)      # queued data take up memory, too
    if full and (data_bytes(operation) is not None or text_of(operation) is not None):
        client.say(transaction.refuse(responses.BUSY))
        return
    client.say(transaction.queue(command))


def owned(client: Client, operation: _Operation) -> _Operation:
    """Add data of the client's connection to the operation: its user, if the operation creates an item to hold, and
    whether the job of a DELETE is held by the connection itself or its session.
    """
    if isinstance(operation, HoldItem):
        return operation if operation.item is not None else replace(operation, user=client.guard.user or "")
    if not isinstance(operation, Delete):
        return operation
    job = client.hub.cluster.machine.selected_running(operation.selector)
    return replace(operation, own=True) if job is not None and _holds(client.state, job) else operation


def _holds(state: ClientState, job: RunningJob) -> bool:
    """Return whether the job was handed to this connection, or is bound to its session."""
    if state.attached is not None and job.session == state.attached.number:
        return True
    return state.hand_outs is not None and job.id in state.hand_outs


def log_end(client: Client, command: Command) -> None:
    """Log why a job is done or was buried, for operators."""
    operation = command.operation
    what = "dead" if isinstance(operation, End) and operation.how is How.BURY else "done"
    client.hub.reasons.note(client.link.peer, f"job {command.operation.id} is {what}, {command.arguments[0]}")


def _not_allowed(client: Client, command: Command) -> None:
    assert client.state.transaction is not None
    client.say(client.state.transaction.refuse(command.answer or not_between(command)))


def _offline(client: Client, command: Command) -> None:
    client.say(NoReply.REFUSED)
