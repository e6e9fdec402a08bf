"""READY jobs that have a TTL: which of them fades next (spec/state-machine 6.2)."""

from __future__ import annotations

from msgspec import Struct
from sortedcontainers import SortedList

from core.limits import DUE_BITS
from core.store.job import Job


class _End(Struct, order=True, frozen=True, gc=False):
    fade_ms: int
    seq: int
    job: Job        # never compared: seqs differ


class Fading:
    """The READY jobs that have a TTL, in the order of (fade_ms, seq)."""

    __slots__ = ("_ends",)

    def __init__(self) -> None:
        self._ends: SortedList = SortedList()

    def add(self, job: Job) -> None:
        """`job` is READY; its `more.fade_ms` says until when."""
        self._ends.add(_end(job))

    def remove(self, job: Job) -> None:
        """It is no longer."""
        self._ends.remove(_end(job))

    def first(self, clock_ms: int) -> Job | None:
        """The first job whose time is over."""
        if not self._ends or self._ends[0].fade_ms > clock_ms:
            return None
        job: Job = self._ends[0].job
        return job

    def next_due_ms(self) -> int | None:
        """When the next one fades, rounded up as in delayed.py; None: none will."""
        if not self._ends:
            return None
        fade_ms: int = self._ends[0].fade_ms
        return (fade_ms + (1 << DUE_BITS) - 1) >> DUE_BITS << DUE_BITS


def _end(job: Job) -> _End:
    assert job.more is not None
    assert job.more.fade_ms is not None
    return _End(job.more.fade_ms, job.seq, job)
