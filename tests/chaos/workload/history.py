"""The commands of clients and their outcomes, on one clock: the evidence that the checker judges.

One record is one command as its caller saw it: with a plain client one command on one connection, with a client in a
session one call, however often it was repeated inside. Every body is put only once, so a body identifies its job.
Records are kept as JSON lines, so that a failed run can be looked at later.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

Policy = Literal["random", "weight", "rr", "order", "sorted", "priority", "oldest", "fair", "place"]


class Outcome(Enum):
    """The outcome as the caller knows it."""

    OK = "ok"                       # answered: see `handed`, `finished` or `missing`
    NOT_EXECUTED = "not executed"   # `500`, or never sent completely
    UNKNOWN = "unknown"             # the connection ended, or no answer came, or it never ended


class Put(Struct, frozen=True, omit_defaults=True, tag="put"):
    """PUT of a unique body. `item`: its name as given, or as answered after NEW."""

    body: str
    queue: str
    priority: int
    item: str | None = None


class Get(Struct, frozen=True, omit_defaults=True, tag="get"):
    """GET, GETB, GETBE; the output of a PUT .. WAIT is one of queue `queues[0]` and item `item`.

    `expire_ms`: the lease, None for one without end. `then_done`: the job is dropped when the lease ends. `policy`: how
    one of the queues is chosen (BY), a word of the client library.
    """

    queues: tuple[str, ...]
    expire_ms: int | None = None
    then_done: bool = False
    blocks: bool = False
    until_finished: bool = False
    item: str | None = None
    policy: Policy | None = None


class Done(Struct, frozen=True, tag="done"):
    """DONE of the job handed out as `id`."""

    id: int


class Later(Struct, frozen=True, tag="later"):
    """LATER of the job handed out as `id`."""

    id: int


class PutWith(Struct, frozen=True, omit_defaults=True, tag="put with"):
    """PUT of a unique body, with DELAY, KEY, GROUP and NUMBER."""

    body: str
    queue: str
    priority: int = 0
    delay_ms: int = 0
    key: str | None = None
    group: str | None = None
    number: bool = False


class Puts(Struct, frozen=True, tag="puts"):
    """PUTS: several jobs in one command."""

    puts: tuple[PutWith, ...]


class GetMany(Struct, frozen=True, omit_defaults=True, tag="get many"):
    """GET or GETB with COUNT and META, perhaps BY a policy; when the lease ends a job goes back.

    `number`: instead it is GET NUMBER, of a job that may be in `queues`.
    """

    queues: tuple[str, ...]
    expire_ms: int
    count: int = 10
    blocks: bool = False
    policy: Policy | None = None
    number: int | None = None


class DoneMany(Struct, frozen=True, tag="done many"):
    """DONE of several ids."""

    ids: tuple[int, ...]


class LaterMany(Struct, frozen=True, tag="later many"):
    """LATER .. FIRST of several ids."""

    ids: tuple[int, ...]


class TouchMany(Struct, frozen=True, tag="touch many"):
    """TOUCH .. EXPIRE of several ids; see Touch."""

    ids: tuple[int, ...]
    expire_ms: int


class PutOff(Struct, frozen=True, omit_defaults=True, tag="put off"):
    """LATER .. DELAY of the job handed out as `id`, perhaps with RAN.

    `kicked`: instead it is buried in its queue, and kicked by this number.
    """

    id: int
    delay_ms: int
    ran_ms: int | None = None
    kicked: int | None = None


class Touch(Struct, frozen=True, tag="touch"):
    """TOUCH .. EXPIRE of the job handed out as `id`; never shorter than the lease it was given with."""

    id: int
    expire_ms: int


class Move(Struct, frozen=True, omit_defaults=True, tag="move"):
    """MOVE of the job handed out as `id`."""

    id: int
    queue: str
    delay_ms: int = 0


class Cascade(Struct, frozen=True, omit_defaults=True, tag="cascade"):
    """BEGIN, DONE of the job handed out as `done` and a PUT of each of `puts`, COMMIT. `puts_first`: the PUTs stand
    before the DONE."""

    done: int
    puts: tuple[PutWith, ...]
    puts_first: bool = False


class Copies(Struct, frozen=True, omit_defaults=True, tag="copies"):
    """One PUT of the same data into several queues, by their names or by a topic: all of them or none.

    The copy in the queue `q` of the job `name` is the job `name@q` here, so that each body is still put once.
    """

    puts: tuple[PutWith, ...]
    topic: str | None = None


class Beat(Struct, frozen=True, tag="beat"):
    """WORKER: a heartbeat of the pool `pool`."""

    pool: str


class Steer(Struct, frozen=True, tag="steer"):
    """WORKER SET .. MAX, with a number used once for this pool."""

    pool: str
    most: int


Command = (
    Put | Get | Done | Later | PutWith | Puts | GetMany | DoneMany | LaterMany | TouchMany | PutOff | Touch | Move
    | Cascade | Copies | Beat | Steer
)


class Handed(Struct, frozen=True, omit_defaults=True):
    """The job that was the answer to a Get, or one of those to a GetMany. `attempt` and on: if META was asked for."""

    id: int
    queue: str
    priority: int
    body: str
    item: str | None = None
    attempt: int | None = None
    group: str | None = None
    number: int | None = None


class Finished(Struct, frozen=True):
    """The answer to a Done: FINQ, FINI."""

    queue_done: bool
    item_done: bool


class Record(Struct, frozen=True, omit_defaults=True):
    """One command. `start_ns` is before its first byte was sent, `end_ns` after the last byte of the answer was
    read.
    """

    client: str                     # one client executes one command after the other
    command: Command
    start_ns: int
    end_ns: int | None              # None: no answer until the end of the run
    outcome: Outcome
    server: str | None = None       # the node that answered, where that is known
    handed: Handed | None = None    # Get: None with OK means "404 Queue Empty"
    finished: Finished | None = None
    missing: bool = False           # Done, Later, GET NUMBER: "404 Job Not Found"; Steer: "404 Worker Not Found"
    given: tuple[Handed, ...] = ()  # GetMany: all that was handed out
    # PutWith and what follows it, but for GetMany: did each part do something (the job was there, the key was free)? A
    # Cascade has one part only, and so have Copies.
    good: tuple[bool, ...] = ()
    told: int | None = None         # Beat: the MAX of the answer
    session: bool = False           # repeated inside under one request number until it was answered


class Cut(Struct, frozen=True):
    """From `start_ns` to `end_ns` the node `node` could not reach a majority: it must fall silent and stay so."""

    node: str
    start_ns: int
    end_ns: int


class History:
    """Collects records from many threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.records: list[Record] = []
        self.cuts: list[Cut] = []
        self.late: list[Cut] = []       # when what a node wrote may have come late: only the turns of a pulse need it

    def add(self, record: Record) -> None:
        """Append a record."""
        with self._lock:
            self.records.append(record)

    def save(self, path: Path) -> None:
        """Write one line of JSON for each record, then each cut."""
        with path.open("wb") as file:
            for one in [*self.records, *self.cuts]:
                file.write(msgspec.json.encode(one) + b"\n")


def load(lines: Iterable[bytes]) -> Iterator[Record | Cut]:
    """Yield the records and cuts in the lines that `save` wrote."""
    for line in lines:
        yield msgspec.json.decode(line, type=Cut if line.startswith(b'{"node"') else Record)
