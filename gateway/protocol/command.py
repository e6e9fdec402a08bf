"""A parsed command as one flat record, and the catalog row that describes its verb."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from sockpqd.core import Change, Get, Move, PutWith, wrong_headers
from sockpqd.gateway.protocol.request_id import Numbering
from sockpqd.gateway.protocol.responses import bad_arguments

Words = list[bytes]


class Kind(Enum):
    """The sequencing of a command with the others of its connection."""

    LOGGED = "goes through the log; the next one need not wait for its answer", False
    AT_ONCE = "is answered at once, and the next one need not wait either", False
    READ = "looks at the applied state, when everything before it is answered", True
    ALONE = "changes this node or this connection, when everything before it is answered", True

    def __init__(self, meaning: str, alone: bool) -> None:
        self.meaning = meaning
        self.alone = alone          # whether everything before it must be answered first


class InTransaction(Enum):
    """The handling of a command between BEGIN and COMMIT."""

    REFUSED = "it cannot stand there, and the COMMIT will fail"
    QUEUED = "its operation is executed by the COMMIT"
    AS_EVER = "the same as outside"
    ENDS = "it ends the transaction"
    CLOSES = "it ends the connection, and the transaction with it"


class BodyRule(Struct, frozen=True, eq=False):
    """The data that follow a line.

    `length` returns how many bytes follow a malformed line: 0 if there are none, None if unknown. `optional`: lines of
    the row may have none.
    """

    length: Callable[[Words], int | None]
    optional: bool = False


NO_BODY = BodyRule(lambda words: 0, optional=True)


class UsualLine(Struct, frozen=True, eq=False):
    """The commonest line of a row, read at once by one expression.

    It must match only what the row's `parse` reads, with the same result; whatever it does not match is left to that.
    `match(buffer, start)` includes the end of the line. In a row whose lines always have data the last group is
    their length, and `command(match, data)` is called when they are there.
    """

    match: Callable[[bytes, int], re.Match[bytes] | None]
    command: Callable[[re.Match[bytes], bytes], Command]


class Row(Struct, frozen=True, eq=False):
    """One form of a verb: a line that begins with `word`, and everything the gateway knows about it.

    `parse` takes the words of the line, starting with the last word of the verb. It returns None for a line that
    belongs to the next row of the same word, and raises ArgumentError for a malformed one. `right` returns the answer
    that refuses a user without permission, None if they have it. `run` executes the command for a client. `cost` is its
    share of the budget of a turn; see commands/catalog.py.
    """

    word: bytes                                         # one or two words: PUT, QUEUE STAT
    parse: Callable[[Words], Command | None]
    right: Callable[[Any, Command, Any], bytes | None]
    run: Callable[[Any, Command], None]
    kind: Kind
    cost: int
    numbered: bool = False                              # allowed after REQ
    in_transaction: InTransaction = InTransaction.REFUSED
    while_subscribed: bool = False                      # allowed on a connection that hears events
    body: BodyRule = NO_BODY
    usual: UsualLine | None = None                      # where parsing it by words would be felt
    takes: bool = False                                 # GET: it may depend on the turns of the connection
    counted_as: str | None = None                       # label in the metrics if not the word; "": not counted
    alone: bool = False                                 # as its kind says; copied here for speed

    def __post_init__(self) -> None:
        force_setattr(self, "alone", self.kind.alone)

    @property
    def counter(self) -> str:
        """The verb's label in the metrics; "" if it is not counted."""
        return self.word.decode() if self.counted_as is None else self.counted_as


class Command(Struct, gc=False):
    """A client's command. The grammar creates it; the parser adds the parts before and after its line."""

    operation: Any = None               # the core operation to propose
    length: int | None = None           # of the data still to come: bytes, or jobs for PUTS
    field: str = "data"                 # of the operation, which these data fill
    head: int = 0                       # bytes of headers with which the data begin
    spare: bool = False                 # without room for these data it is executed without them
    arguments: tuple[Any, ...] = ()     # of the line, where not part of the operation
    wait: Get | None = None             # PUT .. WAIT: proposed after the PUT
    until_finished: bool = False        # GETBE: stop waiting when no unfinished jobs are left
    within_ms: int | None = None        # how long to wait at most
    bound: bool = False                 # jobs handed out are bound to the connection's session
    number: int = 0                     # with REQ (spec/sessions 3): its request number within the session
    digest: blake2b | bytes | None = None       # of all its bytes; a running hash while data are awaited
    numbering: Numbering | None = None  # number and digest with the session, once that is known
    answer: bytes | None = None         # set if it is not executed: the answer, once its data have been read
    row: Row = None  # type: ignore[assignment]     # the parser sets it, as the grammar does not know the catalog

    def fill(self, data: bytes) -> None:
        """Complete the command with its data; if the headers are invalid, it gets an answer instead."""
        self.length = None
        operation = self.operation
        if self.head and (wrong := wrong_headers(data[:self.head])) is not None:
            self.answer = bad_arguments(wrong)
        # The frozen operation is not shared yet, so it can be filled in instead of copied.
        if type(operation) is PutWith:
            operation = operation.put
        if isinstance(operation, Change | Move) and operation.headers is not None:
            force_setattr(operation, "headers", data[:self.head])
            if operation.data is not None:
                force_setattr(operation, "data", data[self.head:])
        else:
            force_setattr(operation, self.field, data)
        if self.number:
            assert isinstance(self.digest, blake2b)
            self.digest.update(data)
            self.digest = self.digest.digest()
