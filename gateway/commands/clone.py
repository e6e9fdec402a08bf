"""CLONE: a snapshot uploaded by a client goes through the log in chunks; the last operation swaps the state
(spec/cluster 8.6).
"""

from __future__ import annotations

import secrets
from hashlib import blake2b

from msgspec.structs import replace

from sockpqd.core import CloneChunk, InvalidSnapshot, NotYet, Operation, Reply
from sockpqd.gateway.commands.context.client import Client
from sockpqd.gateway.commands.context.in_session import numbering, without_session
from sockpqd.gateway.commands.transactions import not_between
from sockpqd.gateway.commands.write import no_room
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import Command
from sockpqd.gateway.protocol.request_id import DIGEST_BYTES, Numbering
from sockpqd.gateway.waiting.slots import IGNORED, NoReply, Outcome


def clone(client: Client, command: Command) -> None:
    """CLONE: start an upload; its data arrive as commands of their own."""
    attached, length = client.state.attached, command.length
    assert length is not None
    upload = Clone(
        client, command, numbering(attached.number, command) if command.number and attached is not None else None)
    if client.state.transaction is not None:          # not allowed there; its data still arrive
        upload.fail(client.state.transaction.refuse(not_between(command)))
    elif no_room(client):
        upload.fail(responses.BUSY)
    elif command.number and attached is None:
        upload.fail(without_session(client))
    else:
        upload.begin(length)
    client.state.clone = upload
    client.await_slot(upload)


def data(client: Client, command: Command) -> None:
    """Take the next piece of the snapshot."""
    piece, last = command.arguments
    assert client.state.clone is not None
    client.state.clone.add(piece, last)
    if last:
        client.state.clone = None


class Clone:
    """The slot of a CLONE's answer, which receives the outcomes of all its operations.

    After a failure the rest of the data is read and dropped; the answer is sent after the last byte. The CLONE also
    fails if the user loses the right for `command` before that. With `numbering` (which covers the line only) the last
    operation, the decisive one, is a request: data sent again go through the log again but change nothing.
    """

    numbered = False            # no job is handed out

    def __init__(self, client: Client, command: Command, numbering: Numbering | None = None) -> None:
        self.outcome: Outcome | None = None
        self._client = client
        self._command = command
        self._numbering = numbering
        self._digest = None if numbering is None else blake2b(numbering.digest, digest_size=DIGEST_BYTES)
        self._number = secrets.randbits(63)
        self._open = 0                          # operations without an outcome
        self._begun = False
        self._complete = False                  # all data have arrived
        self._failed: Outcome | None = None
        self._last: Reply | None = None

    def begin(self, total_bytes: int) -> None:
        """Announce an upload of this size to all nodes."""
        self._begun = True
        self._propose(CloneChunk(self._number, total_bytes=total_bytes))

    def fail(self, outcome: Outcome) -> None:
        """Fail the CLONE with this answer without proposing anything."""
        self._failed = outcome

    def add(self, data: bytes, last: bool) -> None:
        """Propose the next bytes from the client."""
        if self._failed is None:
            self._failed = self._refusal()
            if self._failed is not None:
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

    def _refusal(self) -> bytes | None:
        """Return the refusal of further data, None if none is known now."""
        client = self._client
        if client.hub.access.required and (refusal := client.guard.refusal(self._command)) is not None:
            return refusal
        return responses.BUSY if client.hub.cluster.full else None

    def cancel(self) -> None:
        """Abandon the upload: the client is gone."""
        self.outcome = NoReply.CANCELLED
        self._drop()

    def _drop(self) -> None:
        """Make all nodes discard the incomplete upload: a premature end is refused and ends it."""
        if self._begun:
            self._client.hub.cluster.propose(CloneChunk(self._number, last=True), IGNORED)

    def _end(self) -> Operation:
        end = CloneChunk(self._number, last=True)
        if self._numbering is None or self._digest is None:
            return end
        return replace(self._numbering, digest=self._digest.digest()).request(end)

    def applied(self, reply: Reply) -> None:
        """Record that one of the operations was executed."""
        if isinstance(reply, InvalidSnapshot | NotYet):
            self._failed = self._failed or reply
        self._last = reply
        self._ended()

    def refused(self) -> None:
        """Record that one of the operations was not executed, so that the state will not be swapped."""
        self._failed = NoReply.REFUSED
        self._ended()

    def overdue(self) -> None:
        """Record that one of the operations was dropped from an overloaded queue, never to be executed."""
        self._failed = self._failed or responses.BUSY
        self._ended()

    def unknown(self) -> None:
        """Record that the outcome of one of the operations is unknown."""
        self._failed = self.outcome = NoReply.UNKNOWN if self._numbering is None else NoReply.UNKNOWN_REQUEST
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
