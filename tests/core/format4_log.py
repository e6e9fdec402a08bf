"""The log that led to data/format4.snapshot, which the last program that wrote format 4 made of it. Never edited."""

from __future__ import annotations

from core import (
    Batch,
    Bury,
    CloneBegin,
    CloneChunk,
    CloseSession,
    Configure,
    ConfigureQueue,
    CreateQueue,
    Done,
    Get,
    LaterWith,
    Lead,
    OpenSession,
    Operation,
    Order,
    PauseQueue,
    Pick,
    Policy,
    Put,
    PutWith,
    QueueChange,
    Request,
    Requested,
    SetUser,
    Then,
    When,
)

MEMBERS = ("n1", "n2", "n3")
START_MS = 1_700_000_000_000
DIGEST = b"sixteen b digest"


def asked(number: int, operation: Requested, session: int = 1) -> Request:
    """A request of a client."""
    return Request(session, number, DIGEST, 0, False, operation)


def log(cloned: bytes) -> list[list[Operation]]:
    """The operations of each entry, each 100 ms later than the one before, with its index as the seed.

    `cloned`: a snapshot whose CLONE is under way at the end; 100 bytes of it have come.
    """
    return [
        [Lead("n1", 1, MEMBERS, b"sixteen bytes id", 0, Then.LATER)],
        [SetUser("mailer", "put:mail*", b"key one"), Configure(policy=Policy.PRIORITY, session_ttl_ms=50_000)],
        [
            CreateQueue("mail", QueueChange(tries=1, dead="graves", keep_ms=60_000, expire_ms=30_000, then=Then.DEAD)),
            CreateQueue("timed", QueueChange(order=Order.TIME, item_limit=1)),
            ConfigureQueue("idle", QueueChange(limit=3)),
            PauseQueue("shut", True, True),
        ],
        [OpenSession(5, 60_000), OpenSession(2**64 - 1, 1_000, "mailer"), OpenSession(7, 86_400_000, "mailer")],
        [Put("mail", number % 3, b"mail %d" % number, "order" if number % 2 else None) for number in range(6)],
        [
            PutWith(Put("mail", 0, b"keyed"), key="k"),
            PutWith(Put("mail", 5, b"soon done"), key="done"),
            PutWith(Put("mail", 4, b"soon dead"), key="dead"),
            PutWith(Put("mail", -1, b"fades"), ttl_ms=50_000),
            PutWith(Put("mail", 0, b"later"), When(40_000), key="later"),
            PutWith(Put("tick", 0, b"periodic"), every_ms=10_000),
            *[PutWith(Put("timed", 0, b"%d" % at_ms, "x"), When(0, START_MS - at_ms)) for at_ms in (5, 1, 3)],
            PutWith(Put("after", 0, b"of order"), after=("order",)),
            PutWith(Put("after", 1, b"of single"), after=("single", "order")),
            Put("alone", 0, b"single", "single"),
            PutWith(Put("after", 2, b"freed"), after=("single",)),
        ],
        [
            asked(1, Put("print", 2**63 - 1, b"", None, True)),
            asked(2, Pick(Get(("mail",), 60_000, session=1), 2, meta=True)),
            asked(3, Batch((Put("print", 0, b"one"), Put("print", -(2**63), b"x" * 300)), atomic=True)),
            asked(4, Done(1)),
            asked(1, Get(("print",), session=3), session=3),
            Bury(2),
        ],
        [
            Get(("timed",), 20_000),
            Get(("tick",), 80_000, Then.DONE),
            asked(5, Pick(Get(("mail",), 40_000, Then.DEAD, session=1))),
            OpenSession(9, 5_000),
        ],
        [LaterWith(5, first=True), Get(("alone",)), CloseSession(4, True)],
        [Lead("n2", 4, MEMBERS, b"not the first", 10_000, Then.DONE), Done(7)],
        [
            Put("alone", 0, b"work", "work"),
            PutWith(Put("after", 3, b"of work"), after=("work",)),
            Get(("alone",)),
            Done(8),
            CloneBegin(7, len(cloned)),
            CloneChunk(7, cloned[:100]),
        ],
    ]
