"""The commands between BEGIN and COMMIT, and whether they may all be executed."""

from __future__ import annotations

from core import Atomic, Change, Move, Operation, Put, PutWith, cost
from gateway.limits import COMMAND_BYTES, TRANSACTION_BYTES_MAX, TRANSACTION_COMMANDS_MAX, TRANSACTION_WORK_MAX
from gateway.protocol import responses
from gateway.protocol.command import Command


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
        self.burials: list[Command] = []        # BURY with a reason
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
