"""A transaction: the commands queued between BEGIN and COMMIT, or why the COMMIT will be refused."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from sockpqd.core import (
    Atomic,
    Change,
    End,
    Move,
    Operation,
    Put,
    PutWith,
    cost,
)
from sockpqd.gateway.auth.authorizer import Guard
from sockpqd.gateway.limits import (
    BATCH_DATA_BYTES_MAX,
    COMMAND_BYTES,
    TRANSACTION_BYTES_MAX,
    TRANSACTION_COMMANDS_MAX,
    TRANSACTION_WORK_MAX,
)
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command

_Operation = TypeVar("_Operation", bound=Operation)


def data_bytes(operation: Operation) -> int | None:
    """The bytes of data that the operation adds to memory and disk; None if it adds none."""
    if isinstance(operation, Change | Move):
        if operation.data is None and operation.headers is None:
            return None
        return len(operation.data or b"") + len(operation.headers or b"")
    if isinstance(operation, PutWith):
        operation = operation.put
    return len(operation.data) if isinstance(operation, Put) else None


def text_of(operation: Operation) -> bytes | None:
    """Return the ERROR or RESULT of the operation, without which it is executed if there is no room."""
    return operation.text if isinstance(operation, End) else None


def without_text(operation: _Operation) -> _Operation:
    """Return the operation without its ERROR or RESULT, which counts as dropped; others are returned as they are."""
    if isinstance(operation, End) and operation.text:
        return replace(operation, text=None, dropped=True)
    return operation


class Transaction:
    """The queued commands of a connection, or the reason why their COMMIT will be refused."""

    def __init__(self) -> None:
        self.queued: list[Command] = []
        self.refusal: bytes | None = None       # the answer to COMMIT
        self.adds_data = False
        self._commands = 0
        self._bytes = 0
        self._data_bytes = 0
        self._work = 0

    @property
    def operations(self) -> tuple[Atomic, ...]:
        """Return the operation that the COMMIT executes."""
        return tuple([command.operation for command in self.queued])

    @property
    def reasoned(self) -> list[Command]:
        """The commands with a reason: DONE and BURY. No other command of a transaction has arguments."""
        return [command for command in self.queued if command.arguments]

    def refusal_meanwhile(self, guard: Guard) -> bytes | None:
        """Return the answer to the COMMIT if the client's rights no longer allow it, else None."""
        for position, command in enumerate(self.queued, 1):
            refusal = guard.refusal(command)
            if refusal is not None:
                return responses.aborted(position, refusal)
        return None

    def queue(self, command: Command) -> bytes:
        """Queue a command for the COMMIT; return the answer to it."""
        self._commands += 1
        operation = command.operation
        if self.refusal is not None:
            return responses.QUEUED
        size, work = cost(operation)
        brought = data_bytes(operation)
        self._bytes += size
        self._data_bytes += brought or len(text_of(operation) or b"")
        self._work += work
        if (
            self._commands > TRANSACTION_COMMANDS_MAX
            or self._bytes > TRANSACTION_BYTES_MAX
            or self._data_bytes > BATCH_DATA_BYTES_MAX
            or self._work > TRANSACTION_WORK_MAX
        ):
            return self._refuse(responses.TOO_LARGE)
        self.queued.append(command)
        self.adds_data = self.adds_data or brought is not None
        return responses.QUEUED

    @property
    def held_bytes(self) -> int:
        """Memory used by the queued commands."""
        return self._bytes + COMMAND_BYTES * len(self.queued) if self.queued else 0

    def refuse(self, answer: bytes) -> bytes:
        """Record that a command cannot be executed, so that none of them will be; return the answer to it."""
        self._commands += 1
        return answer if self.refusal is not None else self._refuse(answer)

    def _refuse(self, answer: bytes) -> bytes:
        self.refusal = responses.aborted(self._commands, answer)
        self.queued.clear()
        return answer
