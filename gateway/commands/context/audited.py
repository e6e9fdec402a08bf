"""Commands that administer the cluster or its queues, with a line in the audit log for each when it is answered.

No such line is lost to a flood: while very many wait to be written no further command that leaves one is begun.
"""

from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Coroutine, Iterator
from enum import Enum
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import asdict

from sockpqd.core import Requested
from sockpqd.gateway import audit
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.client_state import Run
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.waiting.slots import NoReply, OperationSlot, Outcome, RequestSlot, Slot

BEGUN = "begun"             # of a command whose data still arrive
SENT = "sent"               # of one that streams its answer
GONE = "the client has gone; perhaps it was executed"


def audited(run: Run) -> Run:
    """Return the command with a line in the audit log. Commands of the dashboard are logged by the dashboard."""
    @functools.wraps(run)
    def run_audited(client: Client, command: Command) -> None:
        if client.link.peer.endswith(audit.DASHBOARD):
            run(client, command)
            return
        noted = _Audited(client, command)
        if audit.is_behind(client.hub):
            client.run(_in_time(client, noted, functools.partial(run, cast(Client, noted), command)))
        else:
            run(cast(Client, noted), command)

    return run_audited


async def _in_time(client: Client, noted: _Audited, begin: Callable[[], None]) -> None:
    """Begin the command when the lines of those before it have been written; nothing after it is begun until then."""
    await audit.room(client.hub)
    noted.waits = True
    begin()
    noted.waits = False
    if noted.work is not None:
        await noted.work


class _Audited:
    """A client whose answer to one command is logged, even if the client has disconnected."""

    def __init__(self, client: Client, command: Command) -> None:
        self._client = client
        self._command = command
        self._noted = False
        self.waits = False          # it is begun by a long-running command, which goes on with
        self.work: Coroutine[None, None, None] | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def say(self, outcome: Outcome) -> None:
        """Answer with the outcome, and write it to the audit log."""
        self._note(outcome)
        self._client.say(outcome)

    def say_last(self, answer: bytes) -> None:
        """Answer, close the connection, and write the answer to the audit log."""
        self._note(answer)
        self._client.say_last(answer)

    def propose(self, operation: Requested, numbering: Numbering | None = None) -> None:
        """Propose an operation, and log its outcome."""
        client = self._client
        slot = OperationSlot(client) if numbering is None else RequestSlot(client)
        client.await_slot(_NotedSlot(slot, self._note))
        client.hub.cluster.propose_for(
            client, operation if numbering is None else numbering.request(operation), slot)

    def await_slot(self, slot: Slot) -> None:
        """Answer later; log that the command began, and its outcome."""
        self._note(BEGUN)
        self._client.await_slot(_NotedSlot(slot, self._note))

    def run(self, work: Coroutine[None, None, None]) -> None:
        """Run a long-running command; log its end even if it answers in its own way, or never."""
        noted = self._to_its_end(work)
        weakref.finalize(noted, work.close).atexit = False      # it may end before its first step
        if self.waits:
            self.work = noted
        else:
            self._client.run(noted)

    async def _to_its_end(self, work: Coroutine[None, None, None]) -> None:
        end = GONE
        try:
            await work
            end = SENT
        finally:
            if not self._noted:
                self._note(end)

    def _note(self, outcome: Outcome | str) -> None:
        self._noted = True
        command, client = self._command, self._client
        # bytes are left out: they are secrets and bodies
        about = [str(one) for one in command.arguments or () if one is not None and not isinstance(one, bytes)]
        if not about and command.operation is not None:
            about = list(_said(command.operation))
        audit.note(client.guard.user, client.link.peer, command.row.word.decode(), " ".join(about), _text(outcome))


class _NotedSlot:
    """A slot whose outcome is logged when it is known."""

    def __init__(self, slot: Slot, note: Callable[[Outcome], None]) -> None:
        self._slot = slot
        self._note: Callable[[Outcome], None] | None = note

    @property
    def numbered(self) -> bool:
        return self._slot.numbered

    @property
    def outcome(self) -> Outcome | None:
        """Return the outcome of the slot, and write it to the audit log when it is first known."""
        outcome = self._slot.outcome
        if outcome is not None and self._note is not None:
            note, self._note = self._note, None
            note(outcome)
        return outcome


def _said(operation: Struct) -> Iterator[str]:
    """Yield the fields of an operation, and of the operations it contains, that are worth logging."""
    for name, value in asdict(operation).items():
        if isinstance(value, Struct):
            yield from _said(value)
        elif value is not None and not isinstance(value, bytes):
            yield f"{name}={value.name if isinstance(value, Enum) else value}"


def _text(outcome: Outcome | str) -> str:
    if isinstance(outcome, str):
        return outcome
    if isinstance(outcome, NoReply):
        return outcome.name
    answer = outcome if isinstance(outcome, bytes) else responses.answer(outcome)
    return answer.partition(b"\r\n")[0].decode("utf-8", "replace")
