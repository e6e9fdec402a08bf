"""CLONE: a client's snapshot goes through the log in chunks; the last operation swaps the state (spec/cluster 8.6)."""

from __future__ import annotations

import secrets
from hashlib import blake2b

from msgspec.structs import replace

from core import CloneBegin, CloneChunk, CloneEnd, InvalidSnapshot, Operation, Reply
from gateway.commands.client import Client
from gateway.commands.in_session import numbering, without_session
from gateway.commands.write import no_room
from gateway.protocol import responses
from gateway.protocol.command import Command
from gateway.protocol.request_id import DIGEST_BYTES, Numbering
from gateway.waiting.slots import NOBODY, Fate, Outcome


def clone(client: Client, command: Command) -> None:
    """CLONE; its data come as commands of their own."""
    attached, length = client.state.attached, command.length
    assert length is not None
    upload = Clone(client, numbering(attached.number, command) if command.number and attached is not None else None)
    if client.state.transaction is not None:          # it cannot stand there; its data still come
        upload.fail(client.state.transaction.refuse(responses.BAD_ARGUMENTS))
    elif no_room(client):
        upload.fail(responses.BUSY)
    elif command.number and attached is None:
        upload.fail(without_session(client))
    else:
        upload.begin(length)
    client.state.clone = upload
    client.await_slot(upload)


def data(client: Client, command: Command) -> None:
    """The next piece of the snapshot."""
    piece, last = command.arguments
    assert client.state.clone is not None
    client.state.clone.add(piece, last)
    if last:
        client.state.clone = None


class Clone:
    """The slot of a CLONE's answer, and where the outcomes of all its operations go.

    As soon as something failed the rest of the data is read and dropped; the answer comes after the last byte.
    With `numbering` (of the line alone) the last operation, which decides, is a request: repeated data go through the
    log once more, and change nothing.
    """

    numbered = False            # nothing is handed out

    def __init__(self, client: Client, numbering: Numbering | None = None) -> None:
        self.outcome: Outcome | None = None
        self._client = client
        self._numbering = numbering
        self._digest = None if numbering is None else blake2b(numbering.digest, digest_size=DIGEST_BYTES)
        self._number = secrets.randbits(63)
        self._open = 0                          # operations without an outcome
        self._begun = False
        self._complete = False                  # all data are here
        self._failed: Outcome | None = None
        self._last: Reply | None = None

    def begin(self, total_bytes: int) -> None:
        """So many bytes will come."""
        self._begun = True
        self._propose(CloneBegin(self._number, total_bytes))

    def fail(self, outcome: Outcome) -> None:
        """Nothing is proposed, this is the answer."""
        self._failed = outcome

    def add(self, data: bytes, last: bool) -> None:
        """The next bytes from the client."""
        if self._failed is None and self._client.hub.cluster.full:
            self._failed = responses.BUSY
            self._drop()
        if data and self._failed is None:
            self._propose(CloneChunk(self._number, data))
            if self._digest is not None:
                self._digest.update(data)
        if last:
            if self._failed is None:
                self._propose(self._end())
            self._complete = True
            self._settle()

    def cancel(self) -> None:
        """The client has gone."""
        self.outcome = Fate.CANCELLED
        self._drop()

    def _drop(self) -> None:
        """Let all nodes forget what they have got: it is not complete, and the end before its time is refused."""
        if self._begun:
            self._client.hub.cluster.propose(CloneEnd(self._number), NOBODY)

    def _end(self) -> Operation:
        end = CloneEnd(self._number)
        if self._numbering is None or self._digest is None:
            return end
        return replace(self._numbering, digest=self._digest.digest()).request(end)

    def applied(self, reply: Reply) -> None:
        """One of the operations was executed."""
        if isinstance(reply, InvalidSnapshot):
            self._failed = self._failed or reply
        self._last = reply
        self._ended()

    def refused(self) -> None:
        """One of the operations was not executed, so the state will not be swapped."""
        self._failed = Fate.REFUSED
        self._ended()

    def overdue(self) -> None:
        """Nor will one of them be: there is too much to do."""
        self._failed = self._failed or responses.BUSY
        self._ended()

    def unknown(self) -> None:
        """Nobody knows."""
        self._failed = self.outcome = Fate.UNKNOWN if self._numbering is None else Fate.UNKNOWN_REQUEST
        self._ended()

    def _propose(self, operation: Operation) -> None:
        self._open += 1
        self._client.hub.cluster.propose_for(self._client, operation, self)

    def _ended(self) -> None:
        self._open -= 1
        self._settle()

    def _settle(self) -> None:
        if self._complete and not self._open and self.outcome is None:
            self.outcome = self._failed or self._last
        if self.outcome is not None:
            self._client.wake()
