"""A parsed command as one flat record, and the row of the catalog that says everything about its verb."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from hashlib import blake2b
from typing import Any

from msgspec import Struct
from msgspec.structs import force_setattr

from core import Get, PutWith
from gateway.protocol.request_id import Numbering

Words = list[bytes]


class Kind(Enum):
    """How a command stands among the others of its connection."""

    LOGGED = "goes through the log; the next one need not wait for its answer", False
    AT_ONCE = "is answered at once, and the next one need not wait either", False
    READ = "looks at the applied state, when everything before it is answered", True
    ALONE = "changes this node or this connection, when everything before it is answered", True

    def __init__(self, meaning: str, alone: bool) -> None:
        self.meaning = meaning
        self.alone = alone          # must everything before it be answered first?


class InTransaction(Enum):
    """What is done with a command between BEGIN and COMMIT."""

    REFUSED = "it cannot stand there, and the COMMIT will fail"
    QUEUED = "its operation is executed by the COMMIT"
    AS_EVER = "the same as outside"
    ENDS = "it ends the transaction"
    CLOSES = "it ends the connection, and the transaction with it"


class Body(Struct, frozen=True, eq=False):
    """What stands behind a line.

    `length` finds out how many bytes of it follow a malformed line: 0 when there are none, None when nobody knows.
    """

    length: Callable[[Words], int | None]


NO_BODY = Body(lambda words: 0)


class Row(Struct, frozen=True, eq=False):
    """A verb: one of the lines that begin with `word`, and all that the gateway knows of it.

    `parse` gets the words of the line, the last word of the verb first. It returns None for a line that belongs to the
    next row of the same word, and raises ArgumentError for one that is nothing. `right` says what is answered to a
    user who may not do that, None when he may. `run` executes it for a client.
    """

    word: bytes                                         # one or two words: PUT, QUEUE STAT
    parse: Callable[[Words], Command | None]
    right: Callable[[Any, Command, Any], bytes | None]
    run: Callable[[Any, Command], None]
    kind: Kind
    numbered: bool = False                              # may stand behind REQ
    in_transaction: InTransaction = InTransaction.REFUSED
    body: Body = NO_BODY
    counted_as: str | None = None                       # in the metrics, when it is not the word; "" is not counted
    alone: bool = False                                 # as its kind says; here it is found faster

    def __post_init__(self) -> None:
        force_setattr(self, "alone", self.kind.alone)

    @property
    def counter(self) -> str:
        """The verb in the metrics; "" when it is not counted."""
        return self.word.decode() if self.counted_as is None else self.counted_as


class Command(Struct, gc=False):
    """What a client asked for. The grammar makes it, and the parser adds what stands around or behind its line."""

    operation: Any = None               # of core, that is proposed for it
    length: int | None = None           # of what stands behind the line and is not here yet: bytes; of a PUTS jobs
    arguments: tuple[Any, ...] = ()     # of the line, as far as they are not in the operation
    wait: Get | None = None             # PUT .. WAIT: what is proposed behind the PUT
    until_finished: bool = False        # GETBE: it waits no longer than there are unfinished jobs
    within_ms: int | None = None        # no longer than this
    bound: bool = False                 # what is handed out is bound to the session of the connection
    number: int = 0                     # with REQ (spec/sessions 3): which request of the session it is
    digest: blake2b | bytes | None = None       # of all its bytes; while data are awaited, what they are added to
    numbering: Numbering | None = None  # the same with the session, when that is known
    answer: bytes | None = None         # it is not executed: say this, behind what stands behind the line
    row: Row = None  # type: ignore[assignment]     # the parser sets it, as the grammar does not know the catalog

    def fill(self, data: bytes) -> None:
        """The data that stood behind the line are here."""
        self.length = None
        operation = self.operation
        # Nobody else knows the operation yet, which is frozen for those who will: so it need not be made anew.
        force_setattr(operation.put if type(operation) is PutWith else operation, "data", data)
        if self.number:
            assert isinstance(self.digest, blake2b)
            self.digest.update(data)
            self.digest = self.digest.digest()


Parse = Callable[[Words], Command | None]
