"""Jobs that count how often one was compared with another."""

from __future__ import annotations

from sockpqd.core.store.job import Job


class Counted(Job):
    """`compared`: the number of comparisons of all of them."""

    compared = 0

    def __lt__(self, other: Job) -> bool:
        Counted.compared += 1
        return super().__lt__(other)


def counted(rank: int, seq: int) -> Job:
    return Counted(rank, 0, seq, "q", b"", None, 0, None, None)
