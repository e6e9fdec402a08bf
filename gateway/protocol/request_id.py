"""Numbered commands (REQ): under which number of which session a command is executed, and which command it was.

A client that does not know whether its command was executed repeats it under the same number, and the machine answers
what it answered before (spec/sessions 3). So that nobody takes one command for another, the digest of the command goes
with its number. It is that of the words as they came, not of what this version makes of them: a command may be
repeated on a node of another version. Only that of a COMMIT covers what the queued commands were made into: the
operations as they would stand in the log, whose form does not change.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from msgspec import Struct, msgpack
from msgspec.structs import replace

from core import Atomic, Request, Requested

DIGEST_BYTES = 16


def digest_of(words: list[bytes]) -> blake2b:
    """The digest of a command line, to which the command's data are to be added."""
    return blake2b(b" ".join(words) + b"\n", digest_size=DIGEST_BYTES)


class Numbering(Struct, gc=False, frozen=True):
    """Whose command it is: request `number` of the session."""

    session: int
    number: int
    digest: bytes

    def request(
        self, operation: Requested, part: int = 0, *, keep_waiting: bool = False, until_finished: bool = False,
    ) -> Request:
        """`operation` as (a part of) this command; see core.Request."""
        return Request(self.session, self.number, self.digest, part, keep_waiting, operation, until_finished)

    def covering(self, operations: Iterable[Atomic]) -> Numbering:
        """The same command, when it stands for these operations as well."""
        digest = blake2b(self.digest, digest_size=DIGEST_BYTES)
        for operation in operations:
            digest.update(msgpack.encode(operation))
        return replace(self, digest=digest.digest())
