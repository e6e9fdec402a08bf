"""Checks that no node calls a queue empty after another one has acknowledged a job in it that was not taken.

Each queue has at most one job in its life. So a `404 Queue Empty` is false when the PUT was acknowledged before the
question was asked, and no GET that took the job, or may have, had begun before the answer was there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from enum import Enum

from msgspec import Struct

MS = 1_000_000


class Saw(Enum):
    """The answer to a GET."""

    EMPTY = "empty"
    JOB = "job"
    UNKNOWN = "unknown"
    NOTHING = "nothing"     # it was refused


class Kept(Struct, frozen=True):
    """A PUT that this node acknowledged. Times are those of time.monotonic_ns()."""

    queue: str
    node: str
    start_ns: int
    end_ns: int


class Asked(Struct, frozen=True):
    """A GET sent to this node."""

    queue: str
    node: str
    start_ns: int
    end_ns: int
    saw: Saw


def false_empties(kept: Iterable[Kept], asked: Iterable[Asked]) -> Iterator[str]:
    """Return each `404` that was certainly false, as a sentence."""
    by_queue = {one.queue: one for one in kept}
    questions = [one for one in asked if one.queue in by_queue]
    taken_ns: dict[str, int] = {}
    for one in questions:
        if one.saw in (Saw.JOB, Saw.UNKNOWN):
            taken_ns[one.queue] = min(one.start_ns, taken_ns.get(one.queue, one.start_ns))
    for one in questions:
        put = by_queue[one.queue]
        if one.saw is Saw.EMPTY and one.start_ns > put.end_ns and taken_ns.get(one.queue, one.end_ns) >= one.end_ns:
            yield (
                f"empty: {one.node} said that {one.queue} is empty, asked {(one.start_ns - put.end_ns) / MS:.1f} ms "
                f"after {put.node} had acknowledged a job in it that nobody had taken"
            )
