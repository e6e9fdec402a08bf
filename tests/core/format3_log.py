"""The log that led to data/format3.snapshot, which the last program that wrote format 3 made of it. Never edited."""

from __future__ import annotations

from core import (
    AddLearner,
    CloneBegin,
    CloneChunk,
    CloneEnd,
    CloseSession,
    Done,
    Get,
    Later,
    Lead,
    OpenSession,
    Operation,
    PromoteLearner,
    Put,
    Request,
    Return,
    SetUser,
    Then,
)

MEMBERS = ("n1", "n2", "n3")
START_MS = 1_700_000_000_000
DIGEST = b"sixteen b digest"


def asked(number: int, operation: Put | Get | Done | Later | CloneEnd, part: int = 0, session: int = 1) -> Request:
    """A request of a client."""
    return Request(session, number, DIGEST, part, False, operation)


def log(cloned: bytes) -> list[list[Operation]]:
    """The operations of each entry, each 100 ms later than the one before, with its index as the seed.

    `cloned`: a snapshot whose CLONE is under way at the end; 100 bytes of it have come.
    """
    return [
        [Lead("n1", 1, MEMBERS, b"sixteen bytes id", 0, Then.DONE)],
        [AddLearner("n4", "h:4", "h:5"), PromoteLearner("n4", 0), AddLearner("n5", "h:6", "")],
        [SetUser("mailer", "put:mail*", b"key one"), SetUser("admin", "admin", b"key two")],
        [OpenSession(5, 60_000), OpenSession(2**64 - 1, 1_000, "mailer"), OpenSession(7, 86_400_000)],
        [Put("mail", number % 3, b"mail %d" % number, "order" if number % 2 else None) for number in range(8)],
        [
            Put("print", 2**63 - 1, b"", "order"),
            Put("print", -(2**63), b"x" * 300),
            Put("scan", 0, b"\0\xff", None, True),
        ],
        [
            asked(1, Put("scan", 0, b"asked", None, True)),
            asked(1, Get(("scan",), 60_000, item_of_put=True, session=1), part=1),
            asked(2, Get(("none",))),
            asked(3, Get(("mail",), 500, Then.LATER, session=1)),
            asked(4, Done(99)),
            asked(70, Put("mail", 9, b"first")),
            asked(71, Get(("mail",), None)),
            asked(72, Done(3)),
            asked(73, Later(99)),
            asked(74, CloneEnd(99)),
            asked(75, Get(("mail",), session=77)),
            asked(5, Put("mail", 9, b"too late")),
            asked(76, Put("alone", 0, b"")),
            asked(77, Get(("alone",))),
            asked(78, Done(4)),
            asked(1, Put("mail", 1, b"of another"), session=2),
        ],
        [Lead("n2", 4, MEMBERS, b"not the first", 10_000, Then.LATER), Get(("mail",), 90_000, Then.DONE, "order")],
        [Get(("print",)), Get(("mail",), 0), Get(("mail",), 50), Return(6), Later(5), CloseSession(3, True)],
        [CloneBegin(7, len(cloned)), CloneChunk(7, cloned[:60]), CloneChunk(7, cloned[60:100])],
    ]
