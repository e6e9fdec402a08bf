"""The log that led to data/format1.snapshot, which the last program that wrote format 1 made of it. Never edited."""

from __future__ import annotations

from core import CloneBegin, CloneChunk, Done, Get, Later, Lead, Operation, Put, Then

MEMBERS = ("n1", "n2", "n3")
START_MS = 1_700_000_000_000


def log(cloned: bytes) -> list[list[Operation]]:
    """The operations of each entry, each 100 ms later than the one before, with its index as the seed.

    `cloned`: a snapshot whose CLONE is under way at the end; 100 bytes of it have come.
    """
    return [
        [Lead("n1", 1, MEMBERS, b"sixteen bytes id", 0, Then.DONE)],
        [Put("mail", number % 3, b"mail %d" % number) for number in range(8)],
        [Put("mail", -5, b"\0\xff\r\n", "order")],
        [Put("print", 2**63 - 1, b"", "order"), Put("print", -(2**63), b"x" * 300), Put("scan", 0, b"new", None, True)],
        [Get(("mail",)), Get(("mail",), 60_000, Then.LATER), Get(("mail",), 500), Get(("print",), 90_000, Then.DONE)],
        [Done(1), Put("scan", 0, b"newer", None, True), Get(("scan",), 50_000)],
        [Lead("n2", 4, MEMBERS, b"not the first", 10_000, Then.LATER), Later(2), Get(("mail",), None, item="order")],
        [CloneBegin(7, len(cloned)), CloneChunk(7, cloned[:60]), CloneChunk(7, cloned[60:100])],
    ]
