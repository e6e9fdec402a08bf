"""Commands of administrators, with a line in the audit log for each when it is answered."""

from __future__ import annotations

import functools
from typing import Any, cast

from msgspec.structs import asdict

from core import Reply, Requested
from gateway import audit
from gateway.commands.context.client import Client
from gateway.commands.context.client_state import Run
from gateway.protocol import responses
from gateway.protocol.command import Command
from gateway.protocol.request_id import Numbering
from gateway.waiting.slots import NoReply, Outcome, Slot

BEGUN = "begun"             # of a command whose data still arrive


def audited(run: Run) -> Run:
    """Return the command with a line in the audit log. What came from the dashboard is logged there."""
    @functools.wraps(run)
    def run_audited(client: Client, command: Command) -> None:
        if not client.link.peer.endswith(audit.DASHBOARD):
            client = cast(Client, _Audited(client, command))
        run(client, command)

    return run_audited


class _Audited:
    """A client whose answer to one command is noted."""

    def __init__(self, client: Client, command: Command) -> None:
        self._client = client
        self._command = command

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def say(self, outcome: Outcome) -> None:
        """Answer, and note it."""
        self._note(outcome)
        self._client.say(outcome)

    def say_last(self, answer: bytes) -> None:
        """Answer, close, and note it."""
        self._note(answer)
        self._client.say_last(answer)

    def propose(self, operation: Requested, numbering: Numbering | None = None) -> None:
        """Propose an operation, and note its reply."""
        self._client.propose_told(operation, self._told, numbering)

    def await_slot(self, slot: Slot) -> None:
        """Answer later; that it was begun is noted."""
        self._note(BEGUN.encode())
        self._client.await_slot(slot)

    def _told(self, reply: Reply) -> Outcome:
        self._note(reply)
        return reply

    def _note(self, outcome: Outcome) -> None:
        command, client = self._command, self._client
        # bytes are secrets and bodies
        about = [str(one) for one in command.arguments or () if one is not None and not isinstance(one, bytes)]
        if not about and command.operation is not None:
            about = [f"{name}={value}" for name, value in asdict(command.operation).items() if value is not None]
        audit.note(client.guard.user, client.link.peer, command.row.word.decode(), " ".join(about), _text(outcome))


def _text(outcome: Outcome) -> str:
    if isinstance(outcome, NoReply):
        return outcome.name
    answer = outcome if isinstance(outcome, bytes) else responses.answer(outcome)
    return answer.partition(b"\r\n")[0].decode("utf-8", "replace")
