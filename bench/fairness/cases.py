"""The cases: which queries there are, how long each runs, and what it waits for."""

from __future__ import annotations

from msgspec import Struct

LONG_MS = 10_000
SHORT_MS = 1_000
SHORT = 9
HUNG_MS = 600_000
STREAM_S = 120
MANY = 100

LEVELS_S = (0, 1, 10, 60, 300)          # the default

# Of the case in which all levels are full: how long queries run, and how many of each there are at any time. One of the
# first kind never leaves level 0, one of the last comes to level 4; levels are narrow, so that an hour is enough.
KINDS = ((900, 8), (2_500, 24), (8_000, 20), (25_000, 10), (250_000, 10))
NARROW_S = (0, 1, 3, 9, 27)
FULL_MS = 3_600_000


class Query(Struct, frozen=True):
    """One query. `kind`: 0 for short ones; `after`: the numbers of the queries that must be done before it.

    `group`: shares its time with all others of this group; empty: it has its own.
    """

    run_ms: int
    kind: int
    arrives_ms: int = 0
    after: tuple[int, ...] = ()
    group: str = ""
    in_one_piece: bool = False      # it says nothing until it ends


class Case(Struct, frozen=True):
    """Queries by number. `until_ms`: when it ends, with a new query for each that is done; 0: when all are done."""

    title: str
    queries: tuple[Query, ...]
    until_ms: int = 0
    levels_s: tuple[int, ...] = LEVELS_S


LONG = Query(LONG_MS, 1)
SHORT_ONE = Query(SHORT_MS, 0)


def ten(workers: int) -> Case:
    """Presto's example: query [0] takes 10 s, the nine others 1 s each."""
    return Case("One of 10 s, then nine of 1 s", (LONG, *[SHORT_ONE] * SHORT))


def dependent(workers: int) -> Case:
    """Return the usual case, in which query [6] waits for [0] to [5]."""
    waits = Query(SHORT_MS, 0, after=tuple(range(6)))
    return Case("The same, the seventh query waits for the first six (`AFTER`)",
                (LONG, *[SHORT_ONE] * 5, waits, *[SHORT_ONE] * 3))


def hung(workers: int) -> Case:
    """Return a case in which the first user's query hangs."""
    return Case("The same, the first query hangs for ten minutes",
                (Query(HUNG_MS, 1, in_one_piece=True), *[SHORT_ONE] * SHORT))


def stream(workers: int) -> Case:
    """Return a case of one query of 10 s, and as many of 1 s as the workers can process, for two minutes."""
    short = [Query(SHORT_MS, 0, at_s * 1000) for at_s in range(STREAM_S) for _ in range(workers)]
    return Case("One of 10 s; for two minutes each worker gets one of 1 s each second", (LONG, *short))


def customers(workers: int) -> Case:
    """A customer with a hundred jobs of 1 s, then nine with one each."""
    many = [Query(SHORT_MS, 1, group="customer")] * MANY
    return Case("A customer with a hundred jobs of 1 s, then nine with one each", (*many, *[SHORT_ONE] * SHORT))


def full(workers: int) -> Case:
    """Queries of five lengths, enough that there are some in each level after a while."""
    queries = [Query(run_ms, kind) for kind, (run_ms, count) in enumerate(KINDS) for _ in range(count)]
    return Case("Queries of five lengths", tuple(queries), FULL_MS, NARROW_S)
