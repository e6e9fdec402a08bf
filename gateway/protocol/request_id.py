"""Numbered commands (REQ): the identity of a command, given by its session, its request number and its digest.

A client that does not know whether its command was executed repeats it under the same number, and the state machine
gives the stored reply (spec/sessions 3). To guard against a number being reused for another command, the digest of the
command goes with it. It covers the words as received, not how this version interprets them, because the
command may be repeated on a node of another version. Only the digest of a COMMIT covers the queued operations, in their
log encoding, which never changes.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct, msgpack
from msgspec.structs import replace

from sockpqd.core import Atomic, Request, Requested

DIGEST_BYTES = 16


def digest_of(words: list[bytes]) -> blake2b:
    """Start the digest of a command with its line; the caller adds the command's data."""
    return blake2b(b" ".join(words) + b"\n", digest_size=DIGEST_BYTES)


class Numbering(Struct, gc=False, frozen=True):
    """The identity of a numbered command: request `number` of the session, with its digest."""

    session: int
    number: int
    digest: bytes

    def request(
        self, operation: Requested, part: int = 0, *, keep_waiting: bool = False, until_finished: bool = False,
    ) -> Request:
        """Wrap `operation` as (a part of) this command; see core.Request."""
        return Request(self.session, self.number, self.digest, part, keep_waiting, operation, until_finished)

    def covering(self, operations: Iterable[Atomic]) -> Numbering:
        """Extend the digest to cover these operations as well."""
        digest = blake2b(self.digest, digest_size=DIGEST_BYTES)
        for operation in operations:
            digest.update(msgpack.encode(operation))
        return replace(self, digest=digest.digest())
