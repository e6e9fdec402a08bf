"""Commands that need the connection's session: with REQ they are requests of it, with BOUND it gets jobs or a queue."""

from __future__ import annotations

from msgspec.structs import replace

from sockpqd.core import BeatWorker, ConfigureQueue, GetWith, Taking
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.waiting.slots import NoReply, Outcome


def in_session(client: Client, command: Command) -> None:
    """Execute a command with REQ or BOUND."""
    attached = client.state.attached
    if attached is None:
        client.say(without_session(client))
        return
    if command.number:
        command.numbering = numbering(attached.number, command)
    if command.bound:
        command.operation = _bound(command.operation, attached.number)
    client.hub.tally.commands[command.row] += 1
    command.row.run(client, command)


def numbering(session: int, command: Command) -> Numbering:
    """Return the command's request number within the session."""
    assert isinstance(command.digest, bytes)
    return Numbering(session, command.number, command.digest)


def _bound(
    operation: Taking | ConfigureQueue | BeatWorker, session: int,
) -> Taking | ConfigureQueue | BeatWorker:
    if isinstance(operation, GetWith):
        return replace(operation, get=replace(operation.get, session=session))
    return replace(operation, session=session)


def without_session(client: Client) -> Outcome:
    """Return the answer to a command that needs a session when there is none; a follower does not know sessions."""
    return responses.SESSION_NOT_FOUND if client.hub.cluster.serving else NoReply.REFUSED
